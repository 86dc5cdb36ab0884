//! [`Shim`]: the waker that an observed future gets in the place of its own.
//!
//! The clones of a shim's waker share the shim, which has the waker of the task. The task has only a weak
//! reference to it: so a task that no code can wake is dropped, as if it were not observed. While a clone
//! exists, later polls use the same shim, so that [`Waker::will_wake`] stays true.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::facts::SharedFacts;
use super::span::SpanId;

/// The waker of an observed future.
#[derive(Debug)]
pub(super) struct Shim {
    /// The waker of the task.
    inner: Waker,
    /// `None` if there is no span.
    span: Option<SpanId>,
    /// `None` if there are no facts.
    facts: Option<SharedFacts>,
}

/// The functions of a shim's waker, which points to a [`Shim`] in an `Arc`. A static, because its address
/// tells shims from other wakers.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, discard);

impl Shim {
    pub(super) fn new(inner: Waker, span: Option<SpanId>, facts: Option<SharedFacts>) -> Self {
        Self { inner, span, facts }
    }

    /// Returns whether the shim wakes what `waker` wakes.
    pub(super) fn stands_for(&self, waker: &Waker) -> bool {
        self.inner.will_wake(waker)
    }

    /// Notes what happens to the waker. A wake is noted before it happens: afterwards the task may be polled,
    /// and be over, at any time.
    fn note(&self, op: &'static str, note: fn(&SharedFacts)) {
        self.facts.iter().for_each(note);
        if let Some(span) = &self.span {
            span.report(op);
        }
    }
}

/// The waker of one poll. Neither its creation nor its drop counts: the future gets a reference to it.
pub(super) struct ShimWaker(ManuallyDrop<Waker>);

impl ShimWaker {
    pub(super) fn new(shim: Arc<Shim>) -> Self {
        // SAFETY: the functions of `VTABLE` keep the contract of a waker for a pointer from `Arc::into_raw`.
        Self(ManuallyDrop::new(unsafe {
            Waker::from_raw(RawWaker::new(Arc::into_raw(shim).cast(), &VTABLE))
        }))
    }
}

impl Deref for ShimWaker {
    type Target = Waker;

    fn deref(&self) -> &Waker {
        &self.0
    }
}

impl Drop for ShimWaker {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Arc::into_raw` in `new`, and the waker is not used again.
        drop(unsafe { Arc::from_raw(self.0.data().cast::<Shim>()) });
    }
}

/// Returns whether an observed future is polled with `waker`.
pub(crate) fn is_wrapped(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), &VTABLE)
}

/// Returns the waker for which `waker` stands: the runtime knows its tasks by that one.
pub(crate) fn unwrapped(mut waker: &Waker) -> &Waker {
    while is_wrapped(waker) {
        // SAFETY: a waker with this table points to a shim, and keeps it.
        waker = unsafe { &(*waker.data().cast::<Shim>()).inner };
    }
    waker
}

/// # Safety
///
/// `data` came from `Arc::into_raw`, and that reference is not consumed: as for the functions below, if not
/// said otherwise.
unsafe fn clone(data: *const ()) -> RawWaker {
    let shim = data.cast::<Shim>();
    // SAFETY: as the caller promises.
    unsafe {
        (*shim).note("waker.clone", SharedFacts::note_clone);
        Arc::increment_strong_count(shim);
    }
    RawWaker::new(data, &VTABLE)
}

/// Consumes the reference.
unsafe fn wake(data: *const ()) {
    // SAFETY: as the caller promises, and the reference is consumed.
    let shim = unsafe { Arc::from_raw(data.cast::<Shim>()) };
    if let Some(facts) = &shim.facts {
        facts.note_drop();
    }
    shim.note("waker.wake", SharedFacts::note_wake);
    shim.inner.wake_by_ref();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: as the caller promises.
    let shim = unsafe { &*data.cast::<Shim>() };
    shim.note("waker.wake_by_ref", SharedFacts::note_wake);
    shim.inner.wake_by_ref();
}

/// Consumes the reference.
unsafe fn discard(data: *const ()) {
    // SAFETY: as the caller promises, and the reference is consumed.
    let shim = unsafe { Arc::from_raw(data.cast::<Shim>()) };
    shim.note("waker.drop", SharedFacts::note_drop);
}
