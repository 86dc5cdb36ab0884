//! [`Clock`] without `test-util`: the one that everybody has, which nobody can pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time;

use super::alarm::Alarm;
use super::{Duration, Instant};

pub(super) fn now() -> Instant {
    Instant::from_std(time::Instant::now())
}

/// A runtime's clock.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    is_shut_down: AtomicBool,
}

/// Something is under way that may bring work.
#[derive(Debug)]
pub(crate) struct Hold(());

impl Clock {
    /// A clock that may be paused, as a current-thread runtime's with `test-util`, and that is from the start, perhaps.
    pub(crate) fn new(_may_pause: bool, _starts_paused: bool) -> Self {
        Self::default()
    }

    pub(crate) fn is_of(&self, _: &paceline::Handle) {}

    pub(crate) fn is_pausable(&self) -> bool {
        false
    }

    /// A thread of the runtime has nothing to do.
    pub(crate) fn idles(&self) {}

    /// Until it is dropped, a paused clock does not move on its own.
    pub(crate) fn hold(&self) -> Hold {
        Hold(())
    }

    /// The runtime has no tasks any more. Who waits elsewhere is told when its timers end, which is next.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_shut_down(&self) -> bool {
        // ORDER: Acquire pairs with the Release above; whoever is woken by the end sees it anyway.
        self.is_shut_down.load(Ordering::Acquire)
    }
}

/// What a [`Sleep`](super::Sleep) waits with.
#[derive(Debug)]
pub(super) struct Wait(Alarm);

impl Wait {
    pub(super) fn at(deadline: Instant) -> Self {
        Self(Alarm::at(deadline.into_std()))
    }

    /// So long from now, and when that is; `None` if the clock does not go that far.
    pub(super) fn after(duration: Duration) -> Option<(Self, Instant)> {
        let (alarm, deadline) = Alarm::after(duration)?;
        Some((Self(alarm), Instant::from_std(deadline)))
    }

    pub(super) fn set(&mut self, deadline: Instant) {
        self.0.set(deadline.into_std());
    }

    #[inline]
    pub(super) fn poll(&mut self, _: &Clock, _: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }

    pub(super) fn is_elapsed(&self, _: &Clock, deadline: Instant) -> bool {
        self.0.is_elapsed(|| now() >= deadline)
    }
}
