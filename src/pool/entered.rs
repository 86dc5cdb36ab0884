//! [`Entered`]: pools that a thread has entered by hand, so that free functions act on them.
//!
//! Each is entered on top of what the thread is in: a frame, or nothing. It covers the pool of that frame and of those below, and is
//! covered by any `block_on` or visit that begins later. They may be left in any order; the one that was entered last, of those
//! that are left over, counts. Where a frame ends before what was entered in it, that lies on the one below from then on.
//!
//! No frame of its own: one on top of a `block_on` that goes on would hide that from the wakers of its tasks.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Pool, stay};
use crate::sync::thread_local;

/// Pools that were entered on top of one frame, the innermost last.
pub(super) struct Entered {
    /// There are some: read by whoever looks for the current pool.
    any: Cell<bool>,
    pools: RefCell<Vec<(u64, Arc<Pool>)>>,
}

thread_local! {
    /// Those that were entered in no frame.
    static OUTSIDE: Entered = const { Entered::new() };
    /// Tells them apart.
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Shows `f` what was entered in no frame; unless the thread is ending, and that is gone.
pub(super) fn with_outside<R>(f: impl FnOnce(&Entered) -> R) -> Option<R> {
    OUTSIDE.try_with(f).ok()
}

impl Entered {
    pub(super) const fn new() -> Self {
        Self { any: Cell::new(false), pools: RefCell::new(Vec::new()) }
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.get()
    }

    /// Shows `f` the innermost one, unless it is another process's.
    pub(super) fn with_last<R>(&self, f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
        let pools = self.pools.borrow();
        let last = pools.last().map(|(_, pool)| pool);
        last.filter(|pool| !pool.is_inherited()).map(f)
    }

    fn push(&self, key: u64, pool: Arc<Pool>) {
        self.pools.borrow_mut().push((key, pool));
        self.any.set(true);
    }

    fn remove(&self, key: u64) -> Option<Arc<Pool>> {
        let mut pools = self.pools.borrow_mut();
        let at = pools.iter().position(|(other, _)| *other == key)?;
        let (_, pool) = pools.remove(at);
        self.any.set(!pools.is_empty());
        Some(pool)
    }

    /// Those that are here lie on top of what is entered there.
    pub(super) fn move_to(&self, below: &Self) {
        self.any.set(false);
        let mut pools = self.pools.take();
        below.pools.borrow_mut().append(&mut pools);
        below.any.set(true);
    }
}

/// A pool is entered on this thread until this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    key: u64,
    /// It stays on its thread.
    stays: PhantomData<*const ()>,
}

impl Entry {
    /// Enters `pool`. On a thread that is ending, and has no place for it any more, that changes nothing.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let key = NEXT.with(|next| next.replace(next.get() + 1));
        stay::with_entered(|entered| entered.push(key, pool));
        Self { key, stays: PhantomData }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Not dropped where it is borrowed: it may be the pool's last reference.
        drop(stay::find_entered(|entered| entered.remove(self.key)));
    }
}
