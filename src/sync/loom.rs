//! What the loom models run on.

pub(crate) use event_listener::Event;
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};
// The clock stands still for loom, which does not know of it; and nothing that a model drives has statics, or locals of a
// thread other than the one that polls.
pub(crate) use std::{thread_local, time::Instant};

pub(crate) use super::models::{self as thread, Thread};

/// As in std: no model uses one.
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

pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

/// In a model no time passes, so a deadline may be over at any moment: at the one to which loom has put off this thread's
/// next step.
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

    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: exclusive, as the caller promises; loom checks it.
        self.0.with_mut(|value| f(unsafe { &mut *value }))
    }
}
