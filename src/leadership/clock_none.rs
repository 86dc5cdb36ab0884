//! The clock of leaderships in a usual build: none.

/// Measures nothing.
#[derive(Debug)]
pub(super) struct LeaderClock;

#[allow(clippy::unused_self, reason = "the functions of the other file use it")]
impl LeaderClock {
    #[inline]
    pub(super) fn start() -> Self {
        Self
    }

    #[inline]
    pub(super) fn start_anew(&mut self) {}

    #[inline]
    pub(super) fn stop(&self) {}
}
