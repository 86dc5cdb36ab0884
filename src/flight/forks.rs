//! Which process a recorder belongs to: in the child of a fork, a lock of the parent may be held for ever.
//!
//! A count of its own, beside that of `fork`, because the layers between the two name this module.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between the first process that used this crate and this one.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Counts a fork. Called in the child.
#[cfg(all(unix, not(miri)))]
pub(super) fn add() {
    NUMBER.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of forks so far, which tells the processes apart.
pub(super) fn number() -> u32 {
    NUMBER.load(Ordering::Relaxed)
}
