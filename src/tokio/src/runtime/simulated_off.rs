//! Without the feature `sim`, no thread is in a simulation.

use super::Handle;

/// Returns `None`.
#[inline]
pub(crate) fn of_simulation() -> Option<Handle> {
    None
}
