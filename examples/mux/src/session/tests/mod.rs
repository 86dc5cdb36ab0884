//! Two sessions that talk to each other (`pair`), a session with a script (`rules`), and a session that
//! receives nonsense.

mod nonsense;
mod pair;
mod rules;

use futures::task::noop_waker_ref;

use super::*;
use crate::frame::{HEADER, MAX_PAYLOAD};
use crate::inbox::Inbox;

/// A session, with its inbox and outbox.
struct End {
    session: Session,
    inbox: Inbox,
    outbox: Outbox,
    wakes: Wakes,
}

fn cx() -> Context<'static> {
    Context::from_waker(noop_waker_ref())
}

impl End {
    fn new(role: Role, window: u32, streams: u32) -> Self {
        let config = Config { window, streams, ..Config::default() };
        let session = Session::new(role, config);
        Self { session, inbox: Inbox::new(), outbox: Outbox::default(), wakes: Wakes::default() }
    }

    /// Returns a session that has received HELLO, and may open some streams.
    fn greeted(role: Role, window: u32, streams: u32) -> Self {
        let mut end = Self::new(role, window, streams);
        end.hears(&[(0, Frame::Hello { window: 1000, streams: 10 })]).expect("a HELLO");
        end
    }

    /// Returns the bytes that it sends now.
    fn says(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        self.session.emit(&mut self.outbox, &mut self.wakes, &cx());
        while !self.outbox.is_empty() {
            assert!(self.outbox.poll_write(&mut wire, &mut cx()).is_ready(), "there is room");
        }
        wire
    }

    /// Receives bytes, which may be cut anywhere. The limits hold after each piece.
    fn hears_bytes(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let space = self.inbox.space();
            let len = space.len().min(bytes.len());
            space[..len].copy_from_slice(&bytes[..len]);
            self.inbox.filled(len);
            bytes = &bytes[len..];
            while let Some((stream, frame)) = self.inbox.next()? {
                self.session.receive(stream, frame, &mut self.wakes)?;
                self.keeps_limits();
            }
        }
        Ok(())
    }

    fn hears(&mut self, frames: &[(u32, Frame<'_>)]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        frames.iter().for_each(|(stream, frame)| frame.encode(*stream, &mut bytes));
        self.hears_bytes(&bytes)
    }

    /// Checks that the session keeps no more than its config allows, and `own` streams of its own.
    fn keeps_limits(&self) {
        let session = &self.session;
        let (streams, window) = (session.config.streams as usize, session.config.window as usize);
        let own = session.lanes.keys().filter(|id| !session.is_theirs(**id)).count();
        let lanes = session.lanes.len();
        assert!(lanes - own <= streams, "{lanes} streams, of which {own} are its own");
        assert!(session.arrived.len() <= streams && session.refused.len() <= streams);
        assert!(session.gone as usize <= streams);
        assert!(session.queue.len() <= lanes, "{} turns of {lanes} lanes", session.queue.len());
        for lane in session.lanes.values() {
            let frame = HEADER + MAX_PAYLOAD + 64;
            let memory = lane.memory();
            // A frame that is being filled has all of its memory, an empty one has none.
            assert!(memory <= window || (frame..=frame + window).contains(&memory), "{memory} bytes");
        }
        let most = lanes * (window + HEADER + MAX_PAYLOAD + 64) + 32 * (HEADER + MAX_PAYLOAD + 64);
        assert!(session.memory() <= most, "{} bytes, and may have {most}", session.memory());
    }

    fn open(&mut self) -> u32 {
        match self.session.poll_open(&mut 0, &cx(), &mut self.wakes) {
            Poll::Ready(Ok(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    fn accept(&mut self) -> Option<u32> {
        match self.session.poll_accept(&mut 0, &cx(), &mut self.wakes) {
            Poll::Ready(Ok(id)) => id,
            Poll::Ready(Err(_)) => {
                assert!(self.session.ended.is_some());
                None
            }
            Poll::Pending => None,
        }
    }

    fn read(&mut self, id: u32, len: usize) -> Poll<Result<Vec<u8>, Error>> {
        let mut buf = vec![0; len];
        self.session.poll_read(id, &mut cx(), &mut buf, &mut self.wakes).map_ok(|read| {
            buf.truncate(read);
            buf
        })
    }

    fn write(&mut self, id: u32, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        self.session.poll_write(id, &mut cx(), bytes, &mut self.wakes)
    }

    fn close(&mut self, id: u32) {
        let _ = self.session.poll_close(id, &mut cx(), &mut self.wakes);
    }

    fn drop(&mut self, id: u32) {
        self.session.let_go(id, DROPPED, &mut self.wakes);
    }
}
