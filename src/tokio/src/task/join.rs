//! [`JoinHandle`] and [`AbortHandle`]: the references to a spawned task.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use real::task::coop::poll_proceed;

use super::cell::{Cell, Joined};
use super::{Id, JoinError};

/// A future for the output of a task. Dropping it lets the task continue.
pub struct JoinHandle<T> {
    cell: Arc<dyn Joined>,
    output: PhantomData<T>,
}

// SAFETY: the output moves with the handle; the rest of the cell is `Send` and `Sync`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared reference gives no access to the output.
unsafe impl<T: Send> Sync for JoinHandle<T> {}
impl<T> Unpin for JoinHandle<T> {}
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Must be called once for each cell.
    pub(crate) fn of(cell: Arc<Cell<T>>) -> Self {
        let cell: Arc<dyn Joined + '_> = cell;
        // SAFETY: only the lifetime changes. This handle, whose type limits the output's lifetime, and the
        // task touch the output. The rest of the cell, and its drop, which finds no output, do not depend on
        // that type.
        let cell = unsafe { std::mem::transmute::<Arc<dyn Joined + '_>, Arc<dyn Joined>>(cell) };
        Self { cell, output: PhantomData }
    }

    pub fn abort(&self) {
        self.cell.header().abort();
    }

    pub fn is_finished(&self) -> bool {
        self.cell.header().is_complete()
    }

    #[must_use = "abort handles do nothing unless `.abort` is called"]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle { cell: self.cell.clone() }
    }

    pub fn id(&self) -> Id {
        self.cell.header().id()
    }

    /// Registers a waker for the end of the task, or calls it at once.
    pub(crate) fn set_waker(&mut self, waker: &Waker) {
        if self.cell.header().join(waker) {
            waker.wake_by_ref();
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let proceeds = ready!(poll_proceed(cx));
        if !self.cell.header().join(cx.waker()) {
            return Poll::Pending;
        }
        proceeds.made_progress();
        let mut output: Option<Self::Output> = None;
        // SAFETY: the cell was made with this type of output and is complete, and this is its handle.
        unsafe { self.cell.take((&raw mut output).cast()) };
        Poll::Ready(output.expect("JoinHandle polled after completion"))
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: the handle is dropped once.
        unsafe { self.cell.abandon() };
    }
}

impl<T: fmt::Debug> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id()).finish()
    }
}

/// Aborts a task, from any thread.
#[derive(Clone)]
pub struct AbortHandle {
    cell: Arc<dyn Joined>,
}

impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl AbortHandle {
    pub fn abort(&self) {
        self.cell.header().abort();
    }

    pub fn is_finished(&self) -> bool {
        self.cell.header().is_complete()
    }

    pub fn id(&self) -> Id {
        self.cell.header().id()
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").field("id", &self.id()).finish()
    }
}
