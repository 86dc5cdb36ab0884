//! The list of those who wait for a source beside the one in its cell: two tasks in `accept`, say.
//!
//! Rare, so it costs a pointer until it is used. Wakers are called and dropped outside the lock (LF3).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crate::sync::{self, Mutex};
use crate::waking;

/// The waiters of one direction of a source.
#[derive(Debug, Default)]
pub(super) struct Waiters(OnceLock<Arc<Mutex<List>>>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    /// By the number of their arrival.
    waiting: BTreeMap<u64, Waker>,
}

impl Waiters {
    pub(super) fn add(&self, waker: &Waker) -> Listed {
        let list = self.0.get_or_init(Default::default).clone();
        let waker = waker.clone();
        let mut locked = sync::lock(&list);
        locked.next += 1;
        let number = locked.next;
        locked.waiting.insert(number, waker);
        drop(locked);
        Listed { list, number }
    }

    /// Wakes all.
    #[cold]
    pub(super) fn wake_all(&self) {
        let Some(list) = self.0.get() else { return };
        let waiting = std::mem::take(&mut sync::lock(list).waiting);
        waiting.into_values().for_each(waking::wake);
    }
}

/// A waiter's entry; dropping it takes it off the list.
#[derive(Debug)]
pub(super) struct Listed {
    list: Arc<Mutex<List>>,
    number: u64,
}

impl Listed {
    /// Whether nobody woke it yet; then the next one to do so will call `waker`.
    pub(super) fn still_waits(&self, waker: &Waker) -> bool {
        let fresh = waker.clone();
        let mut list = sync::lock(&self.list);
        let Some(present) = list.waiting.get_mut(&self.number) else { return false };
        let old = std::mem::replace(present, fresh);
        drop(list);
        waking::discard(Some(old));
        true
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let waker = sync::lock(&self.list).waiting.remove(&self.number);
        waking::discard(waker);
    }
}
