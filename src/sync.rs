//! The only door to atomics, locks and parking: std, or loom under `--cfg paceline_loom`.
//!
//! Everything that a loom model drives takes its primitives from here. What never runs in a model (thread
//! start-up, counters that only metrics read) may use std directly.

pub(crate) use std::time::Instant;

#[cfg(not(paceline_loom))]
pub(crate) use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
};

#[cfg(paceline_loom)]
pub(crate) mod models;

#[cfg(paceline_loom)]
pub(crate) use {
    loom::sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    models::{self as thread, Thread},
};

/// Locks, whether or not a panic passed through the lock before: what we guard is consistent at every step,
/// because no user code runs under a lock (LF3).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// The store-load barrier of a Dekker handshake: what this thread wrote before it is visible to every thread
/// that passes its own `full_fence` later, or this thread sees what that thread wrote.
#[inline]
pub(crate) fn full_fence() {
    #[cfg(not(paceline_loom))]
    std::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(paceline_loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// Tells the processor that this thread is waiting for another one's next few instructions.
#[inline]
pub(crate) fn spin_hint() {
    #[cfg(not(paceline_loom))]
    std::hint::spin_loop();
    #[cfg(paceline_loom)]
    loom::thread::yield_now();
}

/// Parks the current thread until it is unparked (for no reason, perhaps) or until `deadline`; false if that has
/// passed.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        thread::park();
        return true;
    };
    #[cfg(not(paceline_loom))]
    {
        let left = deadline.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::park_timeout(left);
        }
        !left.is_zero()
    }
    // In a model no time passes, so a deadline may be over at any moment: at the one to which loom has put off this
    // thread's next step.
    #[cfg(paceline_loom)]
    {
        let _ = deadline;
        false
    }
}

/// A cell whose exclusive access some protocol grants, checked by loom in the models.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T>(
    #[cfg(not(paceline_loom))] std::cell::UnsafeCell<T>,
    #[cfg(paceline_loom)] loom::cell::UnsafeCell<T>,
);

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        #[cfg(not(paceline_loom))]
        return Self(std::cell::UnsafeCell::new(value));
        #[cfg(paceline_loom)]
        return Self(loom::cell::UnsafeCell::new(value));
    }

    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    #[inline]
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(not(paceline_loom))]
        // SAFETY: exclusive, as the caller promises.
        return f(unsafe { &mut *self.0.get() });
        #[cfg(paceline_loom)]
        // SAFETY: exclusive, as the caller promises; loom checks it.
        return self.0.with_mut(|value| f(unsafe { &mut *value }));
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
