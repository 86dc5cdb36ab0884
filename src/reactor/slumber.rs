//! [`Slumber`]: whether the leader sleeps in the poller, so that others know whether to ring.
//!
//! No reason to look up is lost between the two sides. Who sleeps: announces it, fence, looks for reasons. Who has a
//! reason: makes it visible, fence, looks whether somebody sleeps. Of two fences one is first, so at least one of the two
//! sees the other.

use crate::sync::{AtomicBool, Ordering, full_fence};

/// The leader sleeps in the poller, or is about to.
#[derive(Debug)]
pub(crate) struct Slumber(AtomicBool);

/// The others know that they have to ring, as long as this is there.
#[derive(Debug)]
#[must_use]
pub(crate) struct Announced<'a>(&'a Slumber);

impl Slumber {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The leader is about to sleep: it looks for reasons not to after this.
    #[inline]
    pub(crate) fn announce(&self) -> Announced<'_> {
        self.0.store(true, Ordering::Relaxed);
        // ORDER: pairs with the fence in `interrupt`.
        full_fence();
        Announced(self)
    }

    /// Calls `ring` if the leader sleeps and nobody else has done so. The reason must be visible already.
    #[inline]
    pub(crate) fn interrupt(&self, ring: impl FnOnce()) {
        // ORDER: pairs with the fence in `announce`.
        full_fence();
        if self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed) {
            ring();
        }
    }
}

impl Drop for Announced<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
