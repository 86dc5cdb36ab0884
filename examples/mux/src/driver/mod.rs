//! The task of a connection: the only one that reads and writes the transport.

mod steps;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::io::{AsyncRead, AsyncWrite};

use crate::Config;
use crate::error::{Error, Violation};
use crate::frame::Frame;
use crate::inbox::Inbox;
use crate::outbox::Outbox;
use crate::session::Session;
use crate::shared::Shared;
use crate::silence::Silence;
use crate::waiting::Wakes;

/// How many rounds it makes before other tasks of its thread get their turn.
const ROUNDS: usize = 4;

/// The future that moves a connection's bytes: nothing happens on the connection unless it is polled.
/// [`spawn`](paceline::spawn()) it.
///
/// Completes when GOODBYE was sent and the streams have ended, or with the error that has ended the
/// connection. Dropping it earlier drops the transport, and all waiting calls of the connection return
/// [`Error::Abandoned`].
#[derive(Debug)]
#[must_use = "a connection does nothing unless its driver is polled"]
pub struct Driver<IO> {
    io: IO,
    shared: Arc<Shared>,
    inbox: Inbox,
    /// The peer has ended the transport.
    eof: bool,
    outbox: Outbox,
    flushed: bool,
    silence: Silence,
    parting: Option<Parting>,
    /// Kept to reuse its memory.
    wakes: Wakes,
}

/// The connection has ended, except for the last frame: the outbox is written, the transport closed, and
/// incoming bytes are discarded up to the end. With unread bytes a system resets the transport, and the peer
/// might not receive the reason.
#[derive(Debug)]
struct Parting {
    result: Result<(), Error>,
    closed: bool,
}

/// The result of a driver's step.
enum Step {
    /// There may be more to do.
    Done,
    /// The step waits.
    Waits,
    /// This was the last step.
    End(Result<(), Error>),
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Driver<IO> {
    pub(crate) fn new(io: IO, shared: Arc<Shared>, config: &Config) -> Self {
        let mut outbox = Outbox::default();
        outbox.push(0, Frame::Hello { window: config.window, streams: config.streams });
        Self {
            io,
            shared,
            inbox: Inbox::new(),
            eof: false,
            outbox,
            flushed: true,
            silence: Silence::new(config.keep_alive),
            parting: None,
            wakes: Wakes::default(),
        }
    }

    /// Changes the session, and wakes the tasks that wait for the change.
    fn with<R>(&mut self, change: impl FnOnce(&mut Session, &mut Inbox, &mut Outbox, &mut Wakes) -> R) -> R {
        let Self { shared, inbox, outbox, wakes, .. } = self;
        let result = shared.gather(wakes, |session, wakes| change(session, inbox, outbox, wakes));
        wakes.release();
        result
    }

    /// Queues the last frame, and ends the streams.
    fn part(&mut self, result: Result<(), Error>) -> Step {
        let why = result.clone().err().unwrap_or(Error::Goodbye);
        let said = self.with(|session, _, _, wakes| {
            session.end(why, wakes);
            session.has_said_goodbye()
        });
        match &result {
            Err(Error::Violation(Violation { code, what })) => {
                self.outbox.push(0, Frame::Goodbye { code: *code as u32, reason: what });
            }
            _ if said => {}
            _ => self.outbox.push(0, Frame::Goodbye { code: 0, reason: "" }),
        }
        // A full inbox would have no room for bytes to discard, and a read of nothing looks like the end.
        self.inbox.clear();
        self.silence.part();
        self.parting = Some(Parting { result, closed: false });
        Step::Done
    }

    /// The transport has failed: the connection ends, if it has not ended before.
    fn failed(&mut self, error: io::Error) -> Step {
        let failed = Err(Error::Io(Arc::new(error)));
        Step::End(self.parting.take().map_or(failed, |parting| parting.result))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Future for Driver<IO> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        for _ in 0..ROUNDS {
            let mut waits = true;
            for step in [Self::receive, Self::send, Self::look_at_clock] {
                match step(this, cx) {
                    Step::Done => waits = false,
                    Step::Waits => {}
                    Step::End(result) => {
                        this.with(|session, _, _, wakes| session.done(result.clone(), wakes));
                        return Poll::Ready(result);
                    }
                }
            }
            if waits {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<IO> Drop for Driver<IO> {
    fn drop(&mut self) {
        self.shared.with(|session, wakes| session.done(Err(Error::Abandoned), wakes));
    }
}
