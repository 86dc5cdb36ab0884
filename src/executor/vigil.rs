//! [`Vigil`]: one thread that waits until no more than so many tasks are left, and is woken by the end that makes it so.
//!
//! An end is one change of a word of its own shard (see [`tasks`](super::tasks)), and must not get dearer for a wait that comes
//! once in a runtime's life. So the mark that somebody waits is a bit of that very word, which the end gets back for nothing.
//!
//! | who waits | who ends |
//! |---|---|
//! | 1. marks the word of each shard | 1. counts in its word, and gets the mark |
//! | 2. full fence | 2. if it is marked: full fence |
//! | 3. counts all; parks if too many are left | 3. counts all; unparks, if few enough are left |
//!
//! **No last end is missed.** An end whose word was not marked comes before the mark in the order of changes of that word: the
//! count of who waits, after the mark, includes it; and so does every count after a fence that is later than his. All others
//! have a fence, as he has. Take the last of these fences. The count after it sees every end: each was made before a fence that is
//! not later, or before a mark that was. If that count is the waiter's, he does not park. If it is an end's, it unparks him; and
//! the token is there for him before he parks, if he has not yet.
//!
//! - That needs the tasks to become no more: those that begin while he waits are counted as they are everywhere, and each that ends
//!   counts again.
//! - What is few enough may change meanwhile. Who changes it unparks the waiter, who has a fence before he counts again: so
//!   either he sees the end, or the end sees the new number.
//! - Who waits may be gone when he is unparked: then nobody parks with that token but a thread that looks for what it waits for.
//!
//! Who is answerable if he is not woken: nobody else, and he has a deadline of his own.

use crate::sync::{self, AtomicUsize, Mutex, Ordering, Thread, thread};

/// Who waits for the last task to end.
#[derive(Debug)]
pub(super) struct Vigil {
    /// So many may be left.
    enough: AtomicUsize,
    keeper: Mutex<Option<Thread>>,
}

impl Vigil {
    pub(super) fn new() -> Self {
        Self { enough: AtomicUsize::new(0), keeper: Mutex::new(None) }
    }

    /// The calling thread is who waits.
    pub(super) fn begin(&self) {
        *sync::lock(&self.keeper) = Some(thread::current());
    }

    pub(super) fn end(&self) {
        sync::lock(&self.keeper).take();
    }

    pub(super) fn enough(&self) -> usize {
        // ORDER: none: see above.
        self.enough.load(Ordering::Relaxed)
    }

    /// So many may be left from now on.
    pub(super) fn is_enough(&self, left: usize) {
        // ORDER: none: whoever waits is unparked after it.
        self.enough.store(left, Ordering::Relaxed);
        self.wake();
    }

    #[cold]
    pub(super) fn wake(&self) {
        let keeper = sync::lock(&self.keeper).clone();
        keeper.iter().for_each(Thread::unpark);
    }
}
