//! The only door to atomics, locks, threads and the clock: std; loom under `--cfg paceline_loom`; shuttle under
//! `--cfg paceline_shuttle`.
//!
//! | mode | what runs in it | what is behind the door |
//! |---|---|---|
//! | std | the crate | std, and nothing else |
//! | std, with `--cfg paceline_contention` | benches that ask where threads meet | std, and a count of failed swaps and contended locks |
//! | loom | models of one protocol each, every schedule of them | loom's atomics and locks; threads that park on its `Notify` |
//! | shuttle | scenarios of the whole pool, many random schedules | shuttle's atomics and locks; threads, thread locals and statics of one run; a clock that a scenario turns |
//!
//! Everything that a model or a scenario drives takes its primitives from here. These stay std's in all modes:
//! `Arc`, where a `Waker` is made of it or it is cast (the door's `Arc` is loom's in loom); `Ordering`, which is one type
//! everywhere; what only metrics read; and `OnceLock`, whose initializers take no step of a model. Under shuttle
//! all threads are coroutines of one: who waited there for a lock of std's would wait for itself.

#[cfg_attr(paceline_loom, path = "loom.rs")]
#[cfg_attr(paceline_shuttle, path = "shuttle/mod.rs")]
#[cfg_attr(not(any(paceline_loom, paceline_shuttle)), path = "std.rs")]
mod primitives;

#[cfg(paceline_loom)]
pub(crate) mod models;

pub(crate) use primitives::*;

/// Locks, whether or not a panic passed through the lock before: what we guard is consistent at every step,
/// because no user code runs under a lock (LF3).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// A number that one thread counts up and any thread reads: a plain load and store, never a locked
/// instruction, so that counting costs nothing that shows.
#[derive(Debug, Default)]
pub(crate) struct Counter(std::sync::atomic::AtomicU64);

impl Counter {
    /// Adds `n`. Only the thread that owns the counter right now (by its role) may call this; two at once
    /// would lose counts, nothing worse.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), std::sync::atomic::Ordering::Relaxed);
    }

    /// Adds `n` from a thread that does not own the counter: for what happens rarely.
    pub(crate) fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A flag. Who takes it, or finds it set, sees what was done before it was set; it orders nothing else.
#[derive(Debug)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn new(is_set: bool) -> Self {
        Self(AtomicBool::new(is_set))
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // ORDER: Acquire pairs with the Release of `set` and `raise`.
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn set(&self, is_set: bool) {
        // ORDER: Release pairs with the Acquire of `is_set`, `raise` and `take`.
        self.0.store(is_set, Ordering::Release);
    }

    /// Sets it. True if it was set already.
    pub(crate) fn raise(&self) -> bool {
        self.0.swap(true, Ordering::AcqRel)
    }

    /// True if it was set, which it is no more. A plain load where it was not.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.is_set() && self.0.swap(false, Ordering::AcqRel)
    }
}

/// How many there are of something; it orders nothing.
#[derive(Debug)]
pub(crate) struct Tally(AtomicUsize);

impl Tally {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// One more. Returns how many there were.
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// One less.
    pub(crate) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
