//! A task's future as paceline polls it: in its runtime's context, with a full budget, its panics caught, and ended when it is aborted.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Cell, Id, JoinError, JoinHandle};
use crate::context::Frame;
use crate::runtime::{Shared, refill};

pin_project_lite::pin_project! {
    /// Wherever this ends, or is dropped, its cell is completed.
    pub(crate) struct TaskFuture<F: Future> {
        // `None` once the task is over.
        #[pin]
        future: Option<F>,
        runtime: Arc<Shared>,
        cell: Arc<Cell<F::Output>>,
    }

    impl<F: Future> PinnedDrop for TaskFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            this.end(Outcome::Cancelled);
        }
    }
}

/// How a task ends.
enum Outcome<T> {
    Output(T),
    Panic(Box<dyn Any + Send>),
    Cancelled,
}

impl<T> Outcome<T> {
    fn into_result(self, id: Id) -> Result<T, JoinError> {
        match self {
            Self::Output(output) => Ok(output),
            Self::Panic(payload) => Err(JoinError::panic(id, payload)),
            Self::Cancelled => Err(JoinError::cancelled(id)),
        }
    }
}

/// Makes a task, which is to be spawned.
pub(crate) fn future<F: Future>(future: F, runtime: Arc<Shared>) -> (TaskFuture<F>, JoinHandle<F::Output>) {
    let cell = Cell::new();
    let handle = JoinHandle::of(cell.clone());
    (TaskFuture { future: Some(future), runtime, cell }, handle)
}

impl<F: Future> TaskFuture<F> {
    /// Drops the future, if it is still there, and then says how it ended.
    fn end(self: Pin<&mut Self>, outcome: Outcome<F::Output>) {
        let mut this = self.project();
        if this.future.is_none() {
            return;
        }
        let _frame = Frame::begin(this.runtime, Some(this.cell.id()), this.runtime.place());
        let dropped = catch_unwind(AssertUnwindSafe(|| this.future.set(None)));
        let outcome = match (dropped, outcome) {
            (Err(panic), Outcome::Cancelled) => Outcome::Panic(panic),
            (_, outcome) => outcome,
        };
        this.cell.complete(outcome.into_result(this.cell.id()));
    }
}

impl<F: Future> Future for TaskFuture<F> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_mut().project();
        let outcome = 'over: {
            if this.cell.is_aborted() {
                break 'over Outcome::Cancelled;
            }
            let Some(future) = this.future.as_pin_mut() else { return Poll::Ready(()) };
            let _frame = Frame::begin(this.runtime, Some(this.cell.id()), this.runtime.place());
            refill();
            match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
                Ok(Poll::Pending) if this.cell.header().waits_as(cx.waker()) => return Poll::Pending,
                Ok(Poll::Pending) => Outcome::Cancelled,
                Ok(Poll::Ready(output)) => Outcome::Output(output),
                Err(panic) => Outcome::Panic(panic),
            }
        };
        self.end(outcome);
        Poll::Ready(())
    }
}
