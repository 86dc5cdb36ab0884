//! The primitives of the scenarios of the whole pool: shuttle's randomized scheduler, and a virtual clock.
//!
//! Differences from std, and from shuttle:
//!
//! - Time is virtual: see [`clock`]. Timeouts of shuttle never happen; those of this door do.
//! - A parked thread wakes for a reason. Shuttle's own `park` returns at random, which would hide every lost
//!   wake.
//! - Orderings have no effect: all threads see each step (orderings are for loom).
//! - In a [simulation](cores) each step has a cost, and the clock of a thread is the sum of these.
//! - Statics and thread locals are those of one run. [`fault`] reports errors that a panic could not, because
//!   the pool catches panics of its users.

// Some of this is only for scenarios, or is there because std has it.
#![allow(dead_code)]

pub(crate) mod clock;
mod condvar;
pub(crate) mod cores;
mod event;
mod lines;
mod local;
pub(crate) mod thread;

pub(crate) use clock::{Instant, coarse_millis, park_until};
pub(crate) use condvar::Condvar;
pub(crate) use event::Event;
pub(crate) use lines::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Mutex};
pub(crate) use local::{LocalKey, local as thread_local};
pub(crate) use shuttle::sync::{Arc, MutexGuard, atomic::Ordering};
pub(crate) use std::sync::atomic::AtomicU64 as MetricU64;
pub(crate) use thread::Thread;

use std::cell::{Cell, UnsafeCell};

/// A static of the run; its value is dropped when the run ends.
macro_rules! process_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        ::shuttle::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use process_static;

process_static! {
    static FAULT: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);
}

/// Orders nothing: all threads see each step.
pub(crate) fn full_fence() {
    cores::charge(|costs| costs.locked);
}

/// Does nothing: in shuttle a load returns the latest value.
pub(crate) fn acquire_fence() {}

/// Lets any thread run first: for a step that is not one of shuttle's primitives.
pub(crate) fn step() {
    shuttle::thread::sleep(std::time::Duration::ZERO);
}

/// Reports that an invariant does not hold. The run fails, even if the panic is caught.
pub(crate) fn fault(what: &str) -> ! {
    FAULT.lock().expect("no thread panics under it").get_or_insert_with(|| what.into());
    panic!("{what}");
}

/// Returns the fault that was reported in this run.
#[cfg(test)]
pub(crate) fn reported_fault() -> Option<String> {
    FAULT.lock().expect("no thread panics under it").clone()
}

/// A cell whose exclusive access some protocol grants; a second access at the same time is a fault.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T> {
    value: UnsafeCell<T>,
    in_use: Cell<bool>,
}

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value), in_use: Cell::new(false) }
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        struct InUse<'a>(&'a Cell<bool>);
        impl Drop for InUse<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        if self.in_use.replace(true) {
            fault("two threads are in one protocol's cell");
        }
        let _in_use = InUse(&self.in_use);
        // SAFETY: exclusive, as the caller promises, and as was just checked.
        f(unsafe { &mut *self.value.get() })
    }
}
