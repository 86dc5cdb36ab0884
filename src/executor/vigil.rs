//! The vigil: one thread waits until few tasks are left. The task end that reaches the threshold wakes
//! the thread, which counts again.
//!
//! An end is a single change of the word of its shard (see [`tasks`](super::tasks)), and must not become
//! more expensive for a wait that happens once in the life of a runtime. So the mark that a thread waits is
//! a bit of that same word: the end reads the mark in the operation that counts the end.
//!
//! | the waiter | an end |
//! |---|---|
//! | 1. marks the word of each shard | 1. counts in its word, and reads the mark |
//! | 2. full fence | 2. if the word is marked: full fence |
//! | 3. counts all; parks if too many are left | 3. counts all; unparks if few enough are left |
//!
//! **The last end wakes the waiter.** An end that found its word unmarked precedes the mark in the
//! modification order of that word. So the waiter's count, which follows the mark, includes this end, and
//! so does each count behind a later fence. Every other end passes a fence, as the waiter does. Consider
//! the last of these fences: the count that follows it includes every end, because each end precedes either
//! its own fence, which is not later, or the mark of its shard. If it is the waiter's count, the waiter
//! does not park. If it is the count of an end, that end unparks the waiter; if the waiter has not parked
//! yet, the token makes its `park` return.
//!
//! - Tasks that are spawned during the wait do not break this: they are counted like all others, and each of
//!   their ends counts again.
//! - The threshold may change during the wait. The thread that changes it unparks the waiter, and the waiter
//!   passes a fence before it counts again. So the waiter sees an end, or that end sees the new threshold.
//! - The waiter may be gone when it is unparked. Then its thread has an unused token, and a later `park` of
//!   that thread returns early: each caller of `park` checks its own condition in a loop.
//!
//! No deputy watches the waiter. The waiter has a deadline of its own.

use super::tasks::{Shard, Tasks};
use crate::sync::{self, Ordering, thread};

impl Tasks {
    /// Wakes the waiting thread if few enough tasks are left. Called after an end that found the mark.
    #[cold]
    pub(super) fn check_threshold(&self) {
        // ORDER: pairs with the fence of `watch`, and of the waiter before each count. The threshold is
        // Relaxed: the fences of the waiter and of the ends order it, as the header argues.
        sync::full_fence();
        if self.count() <= self.threshold.load(Ordering::Relaxed) {
            self.wake_waiter();
        }
    }

    /// Makes the calling thread the waiter, without waiting: the end that reaches the
    /// [threshold](Self::set_threshold) unparks it. The caller counts after this call and before it parks.
    pub(crate) fn watch(&self) {
        *sync::lock(&self.waiter) = Some(thread::current());
        self.shards.iter().for_each(Shard::watch);
        sync::full_fence();
    }

    /// Ends the wait that [`watch`](Self::watch) began: there is no waiter any more. A task end that has
    /// found the mark before may still unpark the thread.
    pub(crate) fn unwatch(&self) {
        self.shards.iter().for_each(Shard::unwatch);
        sync::lock(&self.waiter).take();
    }

    /// Sets how many tasks may be left when the waiter is woken, and wakes it now so that it counts again.
    pub(crate) fn set_threshold(&self, left: usize) {
        // ORDER: Relaxed. The unpark below pairs with the waiter's park, and the waiter counts after that.
        self.threshold.store(left, Ordering::Relaxed);
        self.wake_waiter();
    }

    /// Unparks the waiter, if there is one, and leaves it registered.
    #[cold]
    fn wake_waiter(&self) {
        let waiter = sync::lock(&self.waiter).clone();
        if let Some(waiter) = waiter {
            waiter.unpark();
        }
    }
}
