//! The direct slot: the one place for the task that a runner polls next, because its thread woke it.
//!
//! | pointer | meaning | next |
//! |---|---|---|
//! | null | empty | [`put`](Slot::put), [`close`](Slot::close) |
//! | `CLOSED` | the runner is gone | nothing |
//! | other | a task, scheduled and in no other place (LF7) | [`take`](Slot::take), `close` |
//!
//! It is an atomic pointer and not a thread-local, so that whoever finds the owner stuck can take the task (B8).
//! Every change is one compare-and-swap or swap, so a task is handed to exactly one thread.

use std::ptr::{self, NonNull};

use async_task::Runnable;

use crate::sync::{AtomicPtr, Ordering};

/// A place for one task.
#[derive(Debug)]
pub(super) struct Slot(AtomicPtr<()>);

/// An address at which no task can be.
fn closed() -> *mut () {
    ptr::without_provenance_mut(1)
}

impl Slot {
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        let task = self.0.load(Ordering::Relaxed);
        task.is_null() || task == closed()
    }

    /// Leaves a task here, or gives it back if the slot is taken or closed.
    #[inline]
    pub(super) fn put(&self, task: Runnable) -> Result<(), Runnable> {
        if !self.0.load(Ordering::Relaxed).is_null() {
            return Err(task);
        }
        let task = task.into_raw().as_ptr();
        // ORDER: Release pairs with the Acquire of `take` and `close`: whoever gets the task sees it scheduled.
        match self.0.compare_exchange(ptr::null_mut(), task, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            // SAFETY: the slot did not take it, so it is still ours.
            Err(_) => Err(unsafe { Self::from_raw(task) }.expect("a task is not null")),
        }
    }

    /// Takes the task out.
    #[inline]
    pub(super) fn take(&self) -> Option<Runnable> {
        let task = self.0.load(Ordering::Relaxed);
        if task.is_null() || task == closed() {
            return None;
        }
        // A compare-and-swap and not a swap: `CLOSED` must stay.
        match self.0.compare_exchange(task, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed) {
            // SAFETY: the exchange made it ours.
            Ok(task) => unsafe { Self::from_raw(task) },
            Err(_) => None,
        }
    }

    /// No task gets in any more; what is in it comes out.
    pub(super) fn close(&self) -> Option<Runnable> {
        let task = self.0.swap(closed(), Ordering::AcqRel);
        // SAFETY: the swap made it ours.
        if task == closed() { None } else { unsafe { Self::from_raw(task) } }
    }

    /// # Safety
    ///
    /// `task` is null, or from `Runnable::into_raw` and not turned back yet.
    unsafe fn from_raw(task: *mut ()) -> Option<Runnable> {
        // SAFETY: as the caller promises.
        NonNull::new(task).map(|task| unsafe { Runnable::from_raw(task) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.close());
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
