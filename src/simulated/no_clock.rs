//! The seam of `clock.rs` without the feature `test-clock`: timers are due by the system's clock.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::sync::Instant;

/// The system's clock.
#[derive(Debug)]
pub(crate) struct Clock;

impl Clock {
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns the time by the clock of the current reactor. There is only the system's clock, so `current`
    /// is not called.
    #[inline]
    pub(crate) fn now_by(_current: impl FnOnce() -> Option<Instant>) -> Instant {
        Instant::now()
    }

    /// Returns zero: the clock never changes.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        0
    }

    /// Returns when the system has to ring for that deadline, and the system's time.
    #[inline]
    pub(crate) fn in_real_time(&self, deadline: Option<Instant>, now: Instant) -> (Option<Instant>, Instant) {
        (deadline, now)
    }

    /// Returns false: the system's clock is never stopped.
    #[inline]
    pub(crate) fn stands(&self) -> bool {
        false
    }

    /// Returns false: no clock is held.
    #[inline]
    pub(crate) fn was_released(&self) -> bool {
        false
    }

    /// Returns false: the system's clock never leaps.
    #[inline]
    pub(crate) fn try_leap(&self, _: impl FnOnce() -> Option<Instant>) -> bool {
        false
    }
}

/// A reactor, as the holders of its clock see it: nothing is asked of it.
#[allow(dead_code, reason = "no clock is held")]
pub(crate) trait Clocked {
    fn clock(&self) -> &Clock;
    fn interrupt(&self);
}

/// Keeps a clock from leaping while it exists. The system's clock never leaps.
#[derive(Debug)]
pub(crate) struct ClockHold<R: Clocked>(PhantomData<R>);

impl<R: Clocked> ClockHold<R> {
    /// Holds the clock of the current reactor. `current` is not called.
    #[inline]
    pub(crate) fn new(_current: impl FnOnce() -> Option<Arc<R>>) -> Self {
        Self(PhantomData)
    }
}
