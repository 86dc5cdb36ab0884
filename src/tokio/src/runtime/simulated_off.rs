//! Without the feature `sim`, no thread is in a simulation.

use super::Handle;

/// The clocks are always the system's.
pub(super) struct SystemClocks;

pub(super) fn system_clocks() -> SystemClocks {
    SystemClocks
}

/// Returns `None`.
#[inline]
pub(crate) fn of_simulation() -> Option<Handle> {
    None
}
