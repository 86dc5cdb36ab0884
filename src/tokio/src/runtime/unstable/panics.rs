//! The end of a runtime, or of a set of tasks that stay on a thread, because one of its tasks has panicked:
//! [`UnhandledPanic::ShutdownRuntime`](real::runtime::UnhandledPanic::ShutdownRuntime).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::Runtime;
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
    /// The wakers of all `block_on`s.
    waiting: Mutex<Vec<Waker>>,
}

impl Panics {
    pub(super) fn new(ends_runtime: bool) -> Self {
        Self { ends_runtime, has_ended: AtomicBool::new(false), waiting: Mutex::default() }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ends_runtime && self.has_ended.load(Ordering::Acquire)
    }

    /// Notes a panic. If it ends the runtime, each `block_on` panics.
    pub(super) fn note(&self) {
        if self.ends_runtime && !self.has_ended.swap(true, Ordering::AcqRel) {
            let waiting = mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            waiting.into_iter().for_each(quiet::wake);
        }
    }

    /// Returns whether the runtime has ended; registers the waker of a `block_on` otherwise.
    fn watch(&self, cx: &mut Context<'_>) -> bool {
        if !self.ends_runtime {
            return false;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        // After the waker is registered: a panic from here on wakes it.
        self.has_ended()
    }
}

/// Runs the future of a `block_on` until it is over, or until a panic of a task ends the runtime: then
/// cancels all tasks, and panics.
pub(super) async fn guard<F: Future>(handle: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    let panics = &handle.shared.extras.panics;
    let output =
        poll_fn(|cx| if panics.watch(cx) { Poll::Ready(None) } else { future.as_mut().poll(cx).map(Some) });
    match output.await {
        Some(output) => output,
        None => {
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

    pub(super) fn runtime(&self) -> Option<Runtime> {
        self.runtime.borrow().upgrade()
    }

    pub(crate) fn end_at_panic(&self, ends_set: bool) {
        self.ends_set.set(ends_set);
    }

    pub(crate) fn note_panic(&self) {
        self.has_ended.set(self.ends_set.get());
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Panics with the reason for the end.
    pub(crate) fn raise(&self) {
        panic!("{}", if self.runtime().is_some() { RUNTIME_ENDED } else { SET_ENDED });
    }
}
