//! What the crate runs on: std.

pub(crate) use event_listener::Event;

#[cfg(paceline_contention)]
#[path = "contention.rs"]
pub(crate) mod contention;

#[cfg(paceline_contention)]
pub(crate) use contention::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Mutex};
#[cfg(not(paceline_contention))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize},
};

pub(crate) use std::{
    sync::{Arc, Condvar, MutexGuard, atomic::Ordering},
    thread::{self, Thread},
    thread_local,
    time::Instant,
};

/// A static of the process; under shuttle one of each run.
macro_rules! process_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$meta])*
        static $name: $type = $value;
    };
}
pub(crate) use process_static;

/// The store-load barrier of a Dekker handshake: what this thread wrote before it is visible to every thread
/// that passes its own `full_fence` later, or this thread sees what that thread wrote.
#[inline]
pub(crate) fn full_fence() {
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Tells the processor that this thread is waiting for another one's next few instructions.
#[inline]
pub(crate) fn spin_hint() {
    std::hint::spin_loop();
}

/// Parks the current thread until it is unparked (for no reason, perhaps) or until `deadline`; false if that has
/// passed.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        thread::park();
        return true;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::park_timeout(left);
    }
    !left.is_zero()
}

/// A cell whose exclusive access some protocol grants, checked in the models.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T>(std::cell::UnsafeCell<T>);

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    #[inline]
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: exclusive, as the caller promises.
        f(unsafe { &mut *self.0.get() })
    }
}
