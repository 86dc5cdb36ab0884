//! [`Entry`]: keeps a pool entered on the current thread.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Pool, stay};
use crate::sync::thread_local;

thread_local! {
    /// The key of the next entry.
    static NEXT_KEY: Cell<u64> = const { Cell::new(0) };
}

/// Keeps a pool entered on this thread until the value is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    key: u64,
    /// Makes the value `!Send`: an entry belongs to its thread.
    stays: PhantomData<*const ()>,
}

impl Entry {
    /// Enters `pool`, and keeps it alive. Has no effect on a thread that is ending and has lost its list.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let key = NEXT_KEY.with(|next| next.replace(next.get() + 1));
        stay::with_entered(|entered| entered.push(key, pool));
        Self { key, stays: PhantomData }
    }
}

impl Drop for Entry {
    /// Leaves the pool, on whichever list of the thread it is by now. May drop the last reference to it.
    fn drop(&mut self) {
        // Dropped after the borrow of the list: this may be the pool's last reference.
        drop(stay::find_entered(|entered| entered.remove(self.key)));
    }
}
