//! The clock by which timers are due: the system's. See `standing.rs`.

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

    /// Tells what was announced before a change from what was after it.
    #[inline]
    pub(super) fn changes(&self) -> u32 {
        0
    }

    /// When the system has to ring for that deadline, and what its clock says.
    #[inline]
    pub(super) fn in_real_time(&self, deadline: Option<Instant>, now: Instant) -> (Option<Instant>, Instant) {
        (deadline, now)
    }

    #[inline]
    pub(crate) fn stands(&self) -> bool {
        false
    }

    #[inline]
    pub(crate) fn was_released(&self) -> bool {
        false
    }

    /// Goes on to that moment, if it stands and may.
    #[inline]
    pub(super) fn leaps(&self, _: impl FnOnce() -> Option<Instant>) -> bool {
        false
    }
}
