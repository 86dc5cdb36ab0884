//! The list of the tasks that wait for a source beside the task in its cell, for example two tasks in
//! `accept`.
//!
//! Such waiters are rare, so the list costs a pointer until it is used. Wakers are called and dropped outside
//! the lock (LF3).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crate::sync::{self, Mutex};
use crate::waking;

/// The waiters of one direction of a source.
#[derive(Debug, Default)]
pub(super) struct Waiters(OnceLock<Arc<Mutex<WaiterList>>>);

#[derive(Debug, Default)]
struct WaiterList {
    /// The number of the last arrival.
    next: u64,
    /// The wakers by their number of arrival.
    waiting: BTreeMap<u64, Waker>,
}

impl Waiters {
    /// Adds an entry at the end of the list, with a clone of `waker`.
    pub(super) fn add(&self, waker: &Waker) -> ListEntry {
        let list = self.0.get_or_init(Default::default).clone();
        let waker = waker.clone();
        let mut locked = sync::lock(&list);
        locked.next += 1;
        let number = locked.next;
        locked.waiting.insert(number, waker);
        drop(locked);
        ListEntry { list, number }
    }

    /// Removes the waiters from the list and wakes them.
    #[cold]
    pub(super) fn wake_all(&self) {
        let Some(list) = self.0.get() else { return };
        let waiting = std::mem::take(&mut sync::lock(list).waiting);
        waiting.into_values().for_each(waking::wake);
    }
}

/// A waiter's entry. Dropping it removes it from the list.
#[derive(Debug)]
pub(super) struct ListEntry {
    list: Arc<Mutex<WaiterList>>,
    number: u64,
}

impl ListEntry {
    /// Replaces the waker, which the next event will call. Returns false if the waiter was woken already.
    pub(super) fn renew(&self, waker: &Waker) -> bool {
        let fresh = waker.clone();
        let mut list = sync::lock(&self.list);
        let Some(present) = list.waiting.get_mut(&self.number) else { return false };
        let old = std::mem::replace(present, fresh);
        drop(list);
        waking::discard(Some(old));
        true
    }
}

impl Drop for ListEntry {
    /// Removes the waiter from the list if it was not woken, and drops its waker outside of the lock.
    fn drop(&mut self) {
        let waker = sync::lock(&self.list).waiting.remove(&self.number);
        waking::discard(waker);
    }
}
