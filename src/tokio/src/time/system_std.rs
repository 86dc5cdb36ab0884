//! The system's time.

use std::time::Instant;

#[inline]
pub(super) fn now() -> Instant {
    Instant::now()
}
