//! A task's future as paceline polls it: in the context of its runtime or set, with a full budget and a guard
//! for panics, and ended when it is aborted.

use std::any::Any;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use paceline::Watched;

use super::{Cell, Id, JoinError, JoinHandle, SpawnMeta};
use crate::context::Frame;
use crate::quiet::quietly;
use crate::runtime::{Shared, begin_poll};

/// The context in which a task is polled and dropped.
pub(crate) trait Home {
    fn poll<R>(&self, id: Id, poll: impl FnOnce() -> R) -> R;

    fn drop_in<R>(&self, id: Id, drop: impl FnOnce() -> R) -> R;

    /// Reports a caught panic to paceline, which cannot see it.
    fn note_panic(&self, spawned_at: &'static Location<'static>);

    /// Returns whether a panic of another task has ended the runtime or the set: this one is then cancelled.
    fn has_ended(&self) -> bool;

    /// Called when the task is spawned.
    fn begins(&self, _id: Id) {}

    /// Called when the future has been dropped, before the join handle is ready.
    fn ends(&self, _id: Id) {}
}

impl Home for Arc<Shared> {
    #[inline]
    fn poll<R>(&self, id: Id, poll: impl FnOnce() -> R) -> R {
        let _frame = Frame::begin(self, Some(id), self.place());
        begin_poll();
        poll()
    }

    fn drop_in<R>(&self, id: Id, drop: impl FnOnce() -> R) -> R {
        let _frame = Frame::begin(self, Some(id), self.place());
        drop()
    }

    fn note_panic(&self, spawned_at: &'static Location<'static>) {
        self.paceline().note_panic(spawned_at);
        self.extras.note_panic();
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.extras.has_ended()
    }
}

pin_project_lite::pin_project! {
    /// Completes its cell in every case, also when it is dropped.
    pub(crate) struct TaskFuture<F: Future, H: Home> {
        // `None` after the end of the task.
        #[pin]
        future: Option<Watched<F>>,
        home: H,
        cell: Arc<Cell<F::Output>>,
        spawned_at: &'static Location<'static>,
    }

    impl<F: Future, H: Home> PinnedDrop for TaskFuture<F, H> {
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

/// Makes a task, to be spawned in its home.
#[track_caller]
pub(crate) fn future<F: Future, H: Home>(
    future: F,
    meta: SpawnMeta<'_>,
    home: H,
) -> (TaskFuture<F, H>, JoinHandle<F::Output>) {
    let cell = Cell::new();
    let handle = JoinHandle::of(cell.clone());
    let future = meta.with_id(cell.id().as_u64()).watch(future);
    home.begins(cell.id());
    (TaskFuture { future: Some(future), home, cell, spawned_at: Location::caller() }, handle)
}

/// Drops the future during the unwinding if its poll panics: its destructor may check for that.
struct PanicDrops<'a, F>(Pin<&'a mut Option<F>>);

impl<F: Future> PanicDrops<'_, F> {
    #[inline]
    fn poll(mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = self.0.as_mut().as_pin_mut() else { return Poll::Pending };
        let result = future.poll(cx);
        mem::forget(self);
        result
    }
}

impl<F> Drop for PanicDrops<'_, F> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl<F: Future, H: Home> TaskFuture<F, H> {
    /// Drops the future, if it still exists, and then stores the outcome.
    fn end(self: Pin<&mut Self>, outcome: Outcome<F::Output>) {
        let mut this = self.project();
        if this.future.is_none() && !matches!(outcome, Outcome::Panic(_)) {
            return;
        }
        let id = this.cell.id();
        this.home.drop_in(id, || {
            let dropped = catch_unwind(AssertUnwindSafe(|| this.future.set(None)));
            let outcome = match (dropped, outcome) {
                (Err(panic), Outcome::Cancelled) => Outcome::Panic(panic),
                (Err(panic), Outcome::Output(output)) => {
                    quietly(|| drop(output));
                    this.home.note_panic(this.spawned_at);
                    Outcome::Panic(panic)
                }
                (_, outcome) => outcome,
            };
            this.home.ends(id);
            this.cell.complete(outcome.into_result(id));
        });
    }
}

impl<F: Future, H: Home> Future for TaskFuture<F, H> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_mut().project();
        let outcome = 'over: {
            if this.cell.is_aborted() || this.home.has_ended() {
                break 'over Outcome::Cancelled;
            }
            if this.future.is_none() {
                return Poll::Ready(());
            }
            let future = PanicDrops(this.future);
            let polled =
                this.home.poll(this.cell.id(), || catch_unwind(AssertUnwindSafe(|| future.poll(cx))));
            match polled {
                Ok(Poll::Pending) if this.cell.header().waits_as(cx.waker()) => return Poll::Pending,
                Ok(Poll::Pending) => Outcome::Cancelled,
                Ok(Poll::Ready(output)) => Outcome::Output(output),
                Err(panic) => {
                    // Before the output is stored: code that joins the task finds the panic counted.
                    this.home.note_panic(this.spawned_at);
                    Outcome::Panic(panic)
                }
            }
        };
        self.end(outcome);
        Poll::Ready(())
    }
}
