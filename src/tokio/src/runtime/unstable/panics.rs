//! The end of a runtime, or of a set of tasks that stay on a thread, because one of its tasks has panicked:
//! [`UnhandledPanic::ShutdownRuntime`](real::runtime::UnhandledPanic::ShutdownRuntime).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::quiet;
use crate::runtime::{Handle, Shared};

const RUNTIME_ENDED: &str =
    "a spawned task panicked and the runtime is configured to shut down on unhandled panic";
const SET_ENDED: &str =
    "a spawned task panicked and the LocalSet is configured to shutdown on unhandled panic";

/// Whether a panic of a task ends the runtime, and whether it has.
#[derive(Debug)]
pub(super) struct Panics {
    ends_runtime: bool,
    has_ended: AtomicBool,
    /// The wakers of all calls of the runtime's own `block_on`, which is not that of its handles.
    waiting: Mutex<Vec<Waker>>,
}

impl Panics {
    pub(super) fn new(ends_runtime: bool) -> Self {
        Self { ends_runtime, has_ended: AtomicBool::new(false), waiting: Mutex::default() }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ends_runtime && self.has_ended.load(Ordering::Acquire)
    }

    /// Notes a panic. If it ends the runtime, each `block_on` of the runtime panics.
    pub(super) fn note(&self) {
        if self.ends_runtime && !self.has_ended.swap(true, Ordering::AcqRel) {
            let waiting = mem::take(&mut *self.waiting());
            waiting.into_iter().for_each(quiet::wake);
        }
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A `block_on` that is woken if a panic ends the runtime, until this is dropped.
struct Waits<'a> {
    panics: &'a Panics,
    waker: Option<Waker>,
}

impl Waits<'_> {
    /// Returns whether the runtime has ended; registers the waker of the `block_on` otherwise.
    fn watch(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.panics.ends_runtime {
            return false;
        }
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.leave();
            self.panics.waiting().push(cx.waker().clone());
            self.waker = Some(cx.waker().clone());
        }
        // After the waker is registered: a panic from here on wakes it.
        self.panics.has_ended()
    }

    fn leave(&mut self) {
        let Some(waker) = self.waker.take() else { return };
        let mut waiting = self.panics.waiting();
        let at = waiting.iter().position(|other| other.will_wake(&waker));
        let removed = at.map(|at| waiting.swap_remove(at));
        // The drop of a waker may run any code.
        drop(waiting);
        drop(removed);
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Runs the future of a `block_on` until it is over, or until a panic of a task ends the runtime: then calls
/// `end`, cancels all tasks, and panics. In a runtime that has ended, too, the future is polled once.
pub(super) async fn guard<F: Future>(handle: &Handle, future: F, end: impl FnOnce()) -> F::Output {
    let mut future = pin!(future);
    let mut waits = Waits { panics: &handle.shared.extras.panics, waker: None };
    let mut is_polled = false;
    let output = poll_fn(|cx| {
        let has_ended = waits.watch(cx);
        if has_ended && is_polled {
            return Poll::Ready(None);
        }
        is_polled = true;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if has_ended => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    match output.await {
        Some(output) => output,
        None => {
            end();
            let _ = handle.paceline().drain(Duration::ZERO).await;
            panic!("{RUNTIME_ENDED}");
        }
    }
}

/// The part of a set of tasks that stay on a thread.
#[derive(Debug, Default)]
pub(crate) struct LocalExtras {
    /// The runtime that the set belongs to, if it is a local one.
    runtime: RefCell<Weak<Shared>>,
    ends_set: Cell<bool>,
    has_ended: Cell<bool>,
}

impl LocalExtras {
    pub(crate) fn bind(&self, runtime: &Arc<Shared>) {
        self.runtime.replace(Arc::downgrade(runtime));
        self.end_at_panic(runtime.extras.panics.ends_runtime);
    }

    pub(super) fn runtime(&self) -> Option<Arc<Shared>> {
        self.runtime.borrow().upgrade()
    }

    pub(crate) fn end_at_panic(&self, ends_set: bool) {
        self.ends_set.set(ends_set);
    }

    pub(crate) fn note_panic(&self) {
        match self.runtime() {
            Some(runtime) => runtime.extras.note_panic(),
            None => self.has_ended.set(self.ends_set.get()),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.get()
            || self.ends_set.get() && self.runtime().is_some_and(|runtime| runtime.extras.has_ended())
    }

    /// Panics with the reason for the end, in a set of its own.
    pub(crate) fn raise(&self) {
        if self.has_ended.get() {
            panic!("{SET_ENDED}");
        }
    }
}
