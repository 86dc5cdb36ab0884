//! [`BlindWait`]: a wait whose caller does its I/O elsewhere.

use std::io;
use std::task::{Context, Poll, ready};

use super::{Source, Waiter};
use crate::reactor::Direction;
use crate::reactor::readiness::Until;
use crate::reactor::record::Wait;

/// A blind wait as the state of a future. Any number may wait at once. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct BlindWait {
    direction: Direction,
    /// The tick when the wait began; `None` before the first poll.
    after: Option<u16>,
    waiter: Waiter,
}

impl BlindWait {
    pub(crate) fn new(direction: Direction) -> Self {
        Self { direction, after: None, waiter: Waiter::default() }
    }

    /// Polls the wait, which begins with the first poll. An event that comes after that ends it, whether or
    /// not the source is ready then.
    pub(crate) fn poll(&mut self, source: &Source, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tick = *self.after.get_or_insert_with(|| source.tick(self.direction));
        loop {
            if self.waiter.poll(source, self.direction, Until::After(tick), cx)? != Wait::Over {
                return Poll::Pending;
            }
            if source.record().readiness.snapshot().has(self.direction, Until::After(tick)) {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Polls the wait, which ends only when the source is ready: asks the system after each event, and waits
    /// again if it is not.
    pub(crate) fn poll_until_ready(&mut self, source: &Source, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll(source, cx))?;
            // Read before the system is asked: an event that is fired after this ends the next wait.
            self.after = Some(source.tick(self.direction));
            if source.is_ready(self.direction) {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
