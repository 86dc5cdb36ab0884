//! Effects of the peer's frames. None of them makes this side keep more than its limits, and a peer that
//! breaks a rule is told which.
//!
//! Nothing here wakes the driver: the driver itself receives, and sends next.

use std::sync::Arc;

use super::*;

impl Session {
    pub(crate) fn receive(&mut self, id: u32, frame: Frame<'_>, wakes: &mut Wakes) -> Result<(), Error> {
        if self.peer_window.is_none() && !matches!(frame, Frame::Hello { .. }) {
            return wrong("it has begun with another frame than HELLO");
        }
        match frame {
            Frame::Hello { .. } if self.peer_window.is_some() => return wrong("it has said HELLO twice"),
            Frame::Hello { window, streams } => {
                if !(1..=MAX_CREDIT).contains(&window) || streams > MAX_CREDIT {
                    return wrong(format!("its HELLO offers a window of {window} and {streams} streams"));
                }
                self.peer_window = Some(window);
                self.ours.may_open = streams;
                self.openers.wake(wakes);
            }
            Frame::Open => self.opened(id, wakes)?,
            Frame::Credit(more) if id == 0 => {
                self.ours.may_open = add(self.ours.may_open, more).ok_or_else(|| {
                    let what = format!("it gives credit for {more} streams on top of {}", self.ours.may_open);
                    Violation::new(Code::Window, what)
                })?;
                self.openers.wake(wakes);
            }
            Frame::Data(_) | Frame::Credit(_) | Frame::Fin | Frame::Reset(_) => {
                if let Some(lane) = self.lane(id)? {
                    lane.receive(frame, wakes)?;
                    self.settle(id);
                }
            }
            Frame::Ping(value) => {
                if self.pong.replace(value).is_some() {
                    return wrong("it has sent a PING before it had the answer to the one before");
                }
            }
            Frame::Pong(value) => {
                if self.pinged.take() != Some(value) {
                    return wrong(format!("PONG {value} answers no PING"));
                }
            }
            Frame::Goodbye { code: 0, .. } if self.goodbye_heard => {
                return wrong("it has said GOODBYE twice");
            }
            Frame::Goodbye { code: 0, .. } => {
                self.goodbye_heard = true;
                self.openers.wake(wakes);
                self.acceptors.wake(wakes);
            }
            Frame::Goodbye { code, reason } => return Err(Error::Told { code, reason: Arc::from(reason) }),
        }
        Ok(())
    }

    /// The peer opens a stream.
    fn opened(&mut self, id: u32, wakes: &mut Wakes) -> Result<(), Violation> {
        if u64::from(id) != self.theirs.next {
            let what = format!("it opens stream {id}, and its next one is {}", self.theirs.next);
            return Err(Violation::new(Code::Protocol, what));
        }
        if self.goodbye_heard {
            return Err(Violation::new(Code::Protocol, format!("it opens stream {id} after its GOODBYE")));
        }
        let Some(left) = self.theirs.may_open.checked_sub(1) else {
            let what = format!("it opens stream {id}, and may have {} at once", self.config.streams);
            return Err(Violation::new(Code::Streams, what));
        };
        self.theirs.may_open = left;
        self.theirs.next += 2;
        if self.leaving.is_some() {
            // The peer may not know yet. Without credit for this stream, there are not many.
            self.refused.push(id);
            return Ok(());
        }
        let credit = self.peer_window.expect("HELLO was heard");
        self.lanes.insert(id, Lane::new(id, false, credit, self.config.window));
        self.arrived.push_back(id);
        self.acceptors.wake(wakes);
        Ok(())
    }

    /// Returns the lane for a frame; none if the stream has ended.
    fn lane(&mut self, id: u32) -> Result<Option<&mut Lane>, Violation> {
        let next = if self.is_theirs(id) { self.theirs.next } else { self.ours.next };
        let known = match self.lanes.get_mut(&id) {
            Some(lane) if !lane.is_announced() => false,
            Some(lane) => return Ok(Some(lane)),
            None => u64::from(id) < next,
        };
        match known {
            true => Ok(None),
            false => Err(Violation::new(Code::Protocol, format!("stream {id} was never opened"))),
        }
    }
}

fn wrong(what: impl Into<Arc<str>>) -> Result<(), Error> {
    Err(Violation::new(Code::Protocol, what).into())
}
