//! [`EnteredPools`]: pools that a thread has entered by hand, so that free functions act on them.
//!
//! A pool is entered on top of the innermost frame, or outside of all frames. The entered pool takes
//! precedence over the pools of that frame and of the frames below, and any `block_on` or visit that begins
//! later takes precedence over the entered pool. Pools may be left in any order; of those that remain, the
//! last one that was entered counts. If a frame ends before a pool that was entered in it, the pool moves
//! to the frame below.
//!
//! An entered pool has no frame of its own: a frame on top of a `block_on` that goes on would hide that
//! `block_on` from the wakers of its tasks.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::Pool;
use crate::sync::thread_local;

/// Pools that were entered on top of one frame, the innermost last.
pub(super) struct EnteredPools {
    /// Whether there are any. Read by each look-up of the current pool.
    any: Cell<bool>,
    pools: RefCell<Vec<(u64, Arc<Pool>)>>,
}

thread_local! {
    /// Pools that were entered outside of all frames.
    static UNFRAMED: EnteredPools = const { EnteredPools::new() };
}

/// Calls `f` with the pools that were entered outside of all frames. Returns `None` if the thread is ending
/// and the list is gone.
pub(super) fn with_outside<R>(f: impl FnOnce(&EnteredPools) -> R) -> Option<R> {
    UNFRAMED.try_with(f).ok()
}

impl EnteredPools {
    pub(super) const fn new() -> Self {
        Self { any: Cell::new(false), pools: RefCell::new(Vec::new()) }
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.get()
    }

    /// Calls `f` with the pool that was entered last. If there is none, returns `None`.
    pub(super) fn with_last<R>(&self, f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
        let pools = self.pools.borrow();
        pools.last().map(|(_, pool)| f(pool))
    }

    /// Adds the pool that was entered last. `key` identifies it for [`remove`](Self::remove).
    pub(super) fn push(&self, key: u64, pool: Arc<Pool>) {
        self.pools.borrow_mut().push((key, pool));
        self.any.set(true);
    }

    /// Removes the pool that was entered with this key, and returns it; `None` if it is not on this list.
    pub(super) fn remove(&self, key: u64) -> Option<Arc<Pool>> {
        let mut pools = self.pools.borrow_mut();
        let at = pools.iter().position(|(other, _)| *other == key)?;
        let (_, pool) = pools.remove(at);
        self.any.set(!pools.is_empty());
        Some(pool)
    }

    /// Moves all pools to `below`, on top of the pools there.
    pub(super) fn move_to(&self, below: &Self) {
        self.any.set(false);
        let mut pools = self.pools.take();
        below.pools.borrow_mut().append(&mut pools);
        below.any.set(true);
    }
}
