//! The time of the simulation that the thread is in, or else the system's.

use std::time::Instant;

#[inline]
pub(super) fn now() -> Instant {
    paceline::clock::now()
}
