//! [`Slumber`]: whether the leader sleeps in the poller, so that other threads know whether to ring.
//!
//! No reason to look up is lost between the two sides. The leader announces that it sleeps, passes a fence,
//! and looks for reasons. Another thread makes its reason visible, passes a fence, and reads the
//! announcement. The fences are sequentially consistent, so one of them is first, and at least one side sees
//! the other.

use crate::sync::{AtomicBool, Ordering, full_fence};

/// Whether the leader sleeps in the poller, or is about to.
#[derive(Debug)]
pub(crate) struct Slumber(AtomicBool);

/// The leader's announcement. While it exists, other threads know that they have to ring.
#[derive(Debug)]
#[must_use]
pub(crate) struct Announcement<'a>(&'a Slumber);

impl Slumber {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Announces that the leader is about to sleep. The leader has to look for reasons not to after this.
    #[inline]
    pub(crate) fn announce(&self) -> Announcement<'_> {
        self.0.store(true, Ordering::Relaxed);
        // ORDER: pairs with the fence in `interrupt`. Either the leader sees the reason, or the other thread
        // sees the announcement.
        full_fence();
        Announcement(self)
    }

    /// Calls `ring` if the leader sleeps and no other thread has rung for this sleep. The reason must be
    /// visible already.
    #[inline]
    pub(crate) fn interrupt(&self, ring: impl FnOnce()) {
        // ORDER: pairs with the fence in `announce`, as explained there.
        full_fence();
        if self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed) {
            ring();
        }
    }
}

impl Drop for Announcement<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
