//! [`Slot`]: the direct slot, a place for the task that a runner polls next because its own thread woke it.
//!
//! | pointer | meaning | next |
//! |---|---|---|
//! | null | empty | [`put`](Slot::put) |
//! | other | a task, scheduled and in no other place (LF7) | [`take`](Slot::take) |
//!
//! The slot is an atomic pointer and not a thread-local, so that a thread that finds the owner stuck can
//! take the task. Only the thread that hosts the runner puts tasks here, so an empty slot stays empty
//! until that thread fills it, with a plain store. Any thread may take a task, with a compare-and-swap, so
//! exactly one thread gets it.

use std::ptr::{self, NonNull};

use async_task::Runnable;

use crate::sync::{AtomicPtr, Ordering};

/// A place for one task.
#[derive(Debug)]
pub(super) struct Slot(AtomicPtr<()>);

impl Slot {
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Puts a task into the slot, or returns it if the slot is taken. Only for the thread that hosts the
    /// runner.
    #[inline]
    pub(super) fn put(&self, task: Runnable) -> Result<(), Runnable> {
        if !self.is_empty() {
            return Err(task);
        }
        // ORDER: Release pairs with the Acquire of `take`: the thread that gets the task sees what was done
        // to it, and what was done before it was scheduled.
        self.0.store(task.into_raw().as_ptr(), Ordering::Release);
        Ok(())
    }

    /// Takes the task out. For any thread: returns `None` also if another thread takes the task at this
    /// moment.
    #[inline]
    pub(super) fn take(&self) -> Option<Runnable> {
        let task = NonNull::new(self.0.load(Ordering::Relaxed))?;
        // ORDER: Acquire pairs with the Release of `put`. The load above may be relaxed: the exchange
        // repeats it.
        let taken =
            self.0.compare_exchange(task.as_ptr(), ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed);
        // SAFETY: `put` stored a pointer from `into_raw`, and only one exchange takes it out. If the task
        // left and came back since the load, the pointer is the same and just as valid.
        taken.ok().map(|_| unsafe { Runnable::from_raw(task) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Returns a scheduled task, and an `Arc` of which the task's future holds a clone.
    fn task() -> (Runnable, Arc<()>) {
        let alive = Arc::new(());
        let kept = alive.clone();
        let (runnable, task) =
            async_task::spawn(async move { drop(kept) }, |_| unreachable!("it does not wait"));
        task.detach();
        (runnable, alive)
    }

    #[test]
    fn lf7_one_task_fits_and_comes_out_once() {
        let slot = Slot::new();
        assert!(slot.is_empty() && slot.take().is_none());
        let [(first, alive), (second, _)] = [(); 2].map(|()| task());
        slot.put(first).expect("it is empty");
        assert!(!slot.is_empty());
        let second = slot.put(second).expect_err("it is full");
        slot.take().expect("it is full").run();
        assert_eq!(Arc::strong_count(&alive), 1, "the first one ran");
        assert!(slot.is_empty() && slot.take().is_none());
        slot.put(second).expect("it is empty again");
    }

    #[test]
    fn a_task_that_is_left_in_a_slot_is_dropped_with_it() {
        let slot = Slot::new();
        let (task, alive) = task();
        slot.put(task).expect("it is empty");
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(slot);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
