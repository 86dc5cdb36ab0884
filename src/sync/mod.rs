//! The only door to atomics, locks, threads and the clock: std; loom under `--cfg paceline_loom`; shuttle
//! under `--cfg paceline_shuttle`.
//!
//! | mode | what runs in it | what is behind the door |
//! |---|---|---|
//! | std | the crate | std, and nothing else |
//! | loom | models of one protocol each, up to two preemptions | loom; its threads park on a `Notify` |
//! | shuttle | scenarios of the whole pool, in random schedules | shuttle, and a virtual clock |
//! | shuttle, in a simulation | the whole pool, in the order of virtual time | shuttle, and virtual cores |
//!
//! All code that a model or a scenario drives takes its primitives from here. These stay std's in all modes:
//! `Arc`, where a `Waker` is made of it or it is cast (the door's `Arc` is loom's in loom); `Ordering`, which
//! is one type everywhere; values that only metrics read; and `OnceLock`: its initializers take no step of a
//! model. Under shuttle all threads are coroutines of one thread: a coroutine that waited for a lock of std's
//! would wait for itself.

use std::io;

#[cfg_attr(paceline_loom, path = "loom.rs")]
#[cfg_attr(paceline_shuttle, path = "shuttle/mod.rs")]
#[cfg_attr(not(any(paceline_loom, paceline_shuttle)), path = "std.rs")]
mod primitives;

#[cfg(paceline_loom)]
pub(crate) mod models;

pub(crate) use primitives::*;

/// Locks, whether or not a panic passed through the lock before: the guarded state is consistent at every
/// step, because no user code runs under a lock (LF3).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Starts a thread for `errand`, which the caller must not run itself. Returns the error of the system if no
/// thread can be started; then `errand` is dropped.
pub(crate) fn start_errand(errand: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("paceline-errand".into()).spawn(errand).map(drop)
}

/// A number that one thread counts up and any thread reads: a plain load and store, never a locked
/// instruction, so that counting costs next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Counter(MetricU64);

impl Counter {
    /// Adds `n`. Only the thread that owns the counter at the moment (by its role) may call this; two threads
    /// at once would lose counts, but do no other harm.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds `n` from a thread that does not own the counter: for rare events.
    pub(crate) fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag. A thread that takes it, or finds it set, sees what was done before it was set. The flag orders
/// nothing else.
#[derive(Debug, Default)]
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

    /// Sets the flag. Returns whether it was set already.
    pub(crate) fn raise(&self) -> bool {
        self.0.swap(true, Ordering::AcqRel)
    }

    /// Clears the flag. Returns whether it was set. A plain load if it was not.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.is_set() && self.0.swap(false, Ordering::AcqRel)
    }
}
