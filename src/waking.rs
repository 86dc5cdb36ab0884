//! Calling wakers that may be anybody's.
//!
//! The thread that calls one has no part in what it does: it leads, or drops something, or polls another task. So a
//! panic in there ends here. The panic hook has reported it by then, and no handler further up would know more.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes.
#[inline]
pub(crate) fn wake(waker: Waker) {
    swallow_panic(|| waker.wake());
}

/// Wakes, and gives the waker back.
#[inline]
pub(crate) fn wake_by_ref(waker: &Waker) {
    swallow_panic(|| waker.wake_by_ref());
}

/// Calls what may be a stranger's code.
#[inline]
pub(crate) fn call(code: impl FnOnce()) {
    swallow_panic(code);
}

/// Drops a waker that is not needed any more, if there is one.
#[inline]
pub(crate) fn discard(waker: Option<Waker>) {
    if let Some(waker) = waker {
        swallow_panic(|| drop(waker));
    }
}

#[inline]
fn swallow_panic(code: impl FnOnce()) {
    // What was interrupted is the stranger's; of ours, it saw nothing.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        discard_payload(payload);
    }
}

/// What a panic carries is the stranger's, too, and may panic when it is dropped; what that carries is left alone.
#[cold]
fn discard_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}
