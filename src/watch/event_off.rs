//! Builds without `tracing`: there is no event. See `event_on.rs`, which has the same names.

use crate::pool::stall::Stall;

pub(super) fn is_wanted() -> bool {
    false
}

pub(super) fn emit(_: &Stall) {}
