//! [`Clock`] without `test-util`: the system's clock, which cannot be paused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use super::alarm::Alarm;
use super::{Duration, Instant, system};

pub(super) fn now() -> Instant {
    Instant::from_std(system::now())
}

/// A runtime's clock.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    is_shut_down: AtomicBool,
}

/// An activity that may produce work.
#[derive(Debug)]
pub(crate) struct Hold(());

impl Clock {
    /// Returns a clock that may be paused, as that of a current-thread runtime with `test-util`, and that may
    /// be paused from the start.
    pub(crate) fn new(_may_pause: bool, _starts_paused: bool) -> Self {
        Self::default()
    }

    pub(crate) fn bind(&self, _: &paceline::Handle) {}

    pub(crate) fn is_pausable(&self) -> bool {
        false
    }

    /// Called when a thread of the runtime is idle.
    pub(crate) fn idles(&self) {}

    /// Until the result is dropped, a paused clock does not move by itself.
    pub(crate) fn hold(&self) -> Hold {
        Hold(())
    }

    /// The runtime has no tasks any more. Tasks that wait elsewhere are woken when its timers end, which
    /// follows.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_shut_down(&self) -> bool {
        // ORDER: Acquire pairs with the Release above; a task that the end wakes sees it anyway.
        self.is_shut_down.load(Ordering::Acquire)
    }
}

/// The wait of a [`Sleep`](super::Sleep).
#[derive(Debug)]
pub(super) struct Wait(Alarm);

impl Wait {
    /// Returns a wait for a deadline, which may have passed.
    pub(super) fn at(deadline: Instant, now: Instant) -> Self {
        Self(Alarm::at(deadline.into_std(), now.into_std()))
    }

    /// Returns a wait for a duration, and its deadline; `None` if that is beyond the clock.
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
