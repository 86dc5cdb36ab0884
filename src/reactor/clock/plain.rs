//! The clock by which timers are due: the system's. `standing.rs` has the clock that tests can stop.

use std::sync::Arc;

use super::Reactor;
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
    pub(super) fn changes(&self) -> u32 {
        0
    }

    /// Returns when the system has to ring for that deadline, and the system's time.
    #[inline]
    pub(super) fn in_real_time(&self, deadline: Option<Instant>, now: Instant) -> (Option<Instant>, Instant) {
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
    pub(super) fn try_leap(&self, _: impl FnOnce() -> Option<Instant>) -> bool {
        false
    }
}

/// Keeps a clock from leaping while it exists. The system's clock never leaps.
#[derive(Debug)]
pub(crate) struct ClockHeld;

impl ClockHeld {
    /// Holds the clock of the current reactor. `current` is not called.
    #[inline]
    pub(crate) fn new(_current: impl FnOnce() -> Option<Arc<Reactor>>) -> Self {
        Self
    }
}
