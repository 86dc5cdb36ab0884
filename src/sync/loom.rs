//! The primitives of the loom models.

pub(crate) use event_listener::Event;
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};
// Loom does not know the clock, which stands still in a model. No model uses statics, or thread locals of
// another thread than the one that polls.
pub(crate) use std::{sync::atomic::AtomicU64 as MetricU64, thread_local, time::Instant};

pub(crate) use super::models::{self as thread, Thread};

/// As in `std`: no model uses one.
macro_rules! process_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$meta])*
        static $name: $type = $value;
    };
}
pub(crate) use process_static;

pub(crate) fn full_fence() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

pub(crate) fn acquire_fence() {
    loom::sync::atomic::fence(Ordering::Acquire);
}

pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

/// Returns zero: in a model no time passes.
pub(crate) fn coarse_millis() -> u64 {
    0
}

/// Parks the current thread until it is unparked; returns false at once if there is a deadline. In a model no
/// time passes, so a deadline may be over at any moment: at the step to which loom has put off this thread.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    if deadline.is_none() {
        thread::park();
    }
    deadline.is_none()
}

/// A cell whose exclusive access some protocol grants; loom checks that it does.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T>(loom::cell::UnsafeCell<T>);

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: exclusive, as the caller promises; loom checks it.
        self.0.with_mut(|value| f(unsafe { &mut *value }))
    }
}
