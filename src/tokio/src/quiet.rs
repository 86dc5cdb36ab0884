//! Calls user code from threads and places that must go on in any case: hooks, wakers, destructors.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls user code, and catches its panic, and also the panic of that panic's payload when it is dropped.
pub(crate) fn quietly(code: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(code)) else { return };
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}

/// Calls a waker. A panic in one waker does not keep others from being called.
#[allow(dead_code, reason = "not with every set of features")]
pub(crate) fn wake(waker: Waker) {
    quietly(|| waker.wake());
}
