//! [`Request`] and [`Post`]: operations that the thread inside runs for other threads.
//!
//! | stage of a request | next |
//! |---|---|
//! | `Waits` | `Runs`, inside; or `Over`, if the future is dropped: then the operation never runs |
//! | `Runs` | `Ended`, inside; or `Over`, if the future is dropped: then the thread inside drops the result |
//! | `Ended` | `Over`, when the future is polled or dropped |
//!
//! The stage changes under a lock that is held for a few instructions, and under which no user code runs
//! (LF3).

use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::Strand;
use super::door::{Linked, Operation};
use crate::budget;
use crate::sync::{self, Mutex};

/// An operation that a future awaits.
pub(super) struct Request<F, R>(Mutex<RequestStage<F, R>>);

enum RequestStage<F, R> {
    /// The operation has not begun.
    Waits(F, Waker),
    /// The thread inside runs the operation.
    Runs(Waker),
    /// The operation has ended, and the result, or its panic, is there.
    Ended(thread::Result<R>),
    /// The result was taken, or the future was dropped.
    Over,
}

impl<F, R> Request<F, R> {
    pub(super) fn new(operation: F, waker: Waker) -> Self {
        Self(Mutex::new(RequestStage::Waits(operation, waker)))
    }

    /// Takes the operation, to run it; `None` if its future was dropped.
    fn begin(&self) -> Option<F> {
        let mut stage = sync::lock(&self.0);
        match mem::replace(&mut *stage, RequestStage::Over) {
            RequestStage::Waits(operation, waker) => {
                *stage = RequestStage::Runs(waker);
                Some(operation)
            }
            _ => None,
        }
    }

    /// Stores the result and returns the waker to call; or returns the result if the future was dropped.
    fn finish(&self, result: thread::Result<R>) -> Result<Waker, thread::Result<R>> {
        let mut stage = sync::lock(&self.0);
        match mem::replace(&mut *stage, RequestStage::Over) {
            RequestStage::Runs(waker) => {
                *stage = RequestStage::Ended(result);
                Ok(waker)
            }
            _ => Err(result),
        }
    }

    /// Takes the result if the operation has ended; else stores `waker`, which will be called when it ends.
    /// Panics if the result was taken before.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<thread::Result<R>> {
        let mut copy = None;
        loop {
            let mut stage = sync::lock(&self.0);
            match &mut *stage {
                RequestStage::Waits(_, known) | RequestStage::Runs(known) => {
                    if known.will_wake(waker) {
                        return Poll::Pending;
                    }
                    if let Some(copy) = &mut copy {
                        // The old waker is dropped with `copy`, after the lock was released.
                        mem::swap(known, copy);
                        return Poll::Pending;
                    }
                }
                RequestStage::Ended(_) => {
                    if let RequestStage::Ended(result) = mem::replace(&mut *stage, RequestStage::Over) {
                        return Poll::Ready(result);
                    }
                }
                RequestStage::Over => panic!("`Strand::with` was polled after it had ended"),
            }
            drop(stage);
            copy = Some(waker.clone());
        }
    }

    /// Ends the request, because its future is dropped: an operation that has not begun never begins.
    pub(super) fn cancel(&self) {
        let stage = mem::replace(&mut *sync::lock(&self.0), RequestStage::Over);
        // The operation or its result is dropped outside the lock.
        drop(stage);
    }
}

impl<T, F, R> Operation<T> for Request<F, R>
where
    F: FnOnce(&mut T) -> R + Send,
    R: Send,
{
    /// Does nothing if the future was dropped. A panic of the operation is its result.
    fn run(this: &Arc<Linked<T, Self>>, state: &mut T) {
        let request = &this.operation;
        let Some(operation) = request.begin() else { return };
        let result = catch_unwind(AssertUnwindSafe(|| operation(state)));
        match request.finish(result) {
            Ok(waker) => waker.wake(),
            Err(unwanted) => drop(unwanted),
        }
    }
}

/// An operation that no future awaits.
pub(super) struct Post<F>(Mutex<Option<F>>);

impl<F> Post<F> {
    pub(super) fn new(operation: F) -> Self {
        Self(Mutex::new(Some(operation)))
    }
}

impl<T, F: FnOnce(&mut T) + Send> Operation<T> for Post<F> {
    /// Runs the operation the first time. A panic leaves this call.
    fn run(this: &Arc<Linked<T, Self>>, state: &mut T) {
        let operation = sync::lock(&this.operation.0).take();
        if let Some(operation) = operation {
            operation(state);
        }
    }
}

/// A future that waits for an operation that could not be run in place.
pub(super) struct With<'a, T, F, R> {
    strand: &'a Strand<T>,
    stage: WithStage<T, F, R>,
}

enum WithStage<T, F, R> {
    /// The future was not polled yet.
    Begins(Option<F>),
    /// The operation was queued, or has run.
    Sent(Arc<Linked<T, Request<F, R>>>),
}

impl<'a, T, F, R> With<'a, T, F, R> {
    pub(super) fn new(strand: &'a Strand<T>, operation: F) -> Self {
        Self { strand, stage: WithStage::Begins(Some(operation)) }
    }
}

/// The future pins none of its fields.
impl<T, F, R> Unpin for With<'_, T, F, R> {}

impl<T, F, R> Future for With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    /// Queues the operation with the first poll, or runs it here. Resumes the panic of the operation.
    /// Panics if the operation could never run, because a `block_on` inside the strand awaits it.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        budget::spend(cx.waker(), || self.poll_operation(cx.waker()))
    }
}

impl<T, F, R> With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    fn poll_operation(&mut self, waker: &Waker) -> Poll<R> {
        let strand = self.strand;
        if let WithStage::Begins(operation) = &mut self.stage {
            let operation = operation.take().expect("the stage changes at once");
            strand.assert_not_inside(waker);
            let request = Linked::new(Request::new(operation, waker.clone()));
            self.stage = WithStage::Sent(request.clone());
            strand.submit(request);
        }
        let WithStage::Sent(request) = &self.stage else { return Poll::Pending };
        match request.operation.poll(waker) {
            Poll::Ready(Ok(output)) => Poll::Ready(output),
            Poll::Ready(Err(panic)) => resume_unwind(panic),
            Poll::Pending => {
                // The future may have been moved into a `block_on` since it was polled first.
                strand.assert_not_inside(waker);
                Poll::Pending
            }
        }
    }
}

impl<T, F, R> Drop for With<'_, T, F, R> {
    /// Cancels the request: an operation that has not begun never runs.
    fn drop(&mut self) {
        if let WithStage::Sent(request) = &self.stage {
            request.operation.cancel();
        }
    }
}
