//! [`Handed`] and [`Posted`]: operations that are run by the thread that is inside.
//!
//! | stage of one that is awaited | next |
//! |---|---|
//! | `Waits` | `Runs`, inside; or `Over`, where the future is dropped: it never runs |
//! | `Runs` | `Ended`, inside; or `Over`, where the future is dropped: the result is dropped where it was made |
//! | `Ended` | `Over`, when the future is polled or dropped |
//!
//! The stage changes under a lock that is held for some instructions, and under which nothing of the user's runs (LF3).

use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::Strand;
use super::door::{Linked, Operation};
use crate::sync::{self, Mutex};

/// An operation that somebody awaits.
pub(super) struct Handed<F, R>(Mutex<Stage<F, R>>);

enum Stage<F, R> {
    Waits(F, Waker),
    Runs(Waker),
    Ended(thread::Result<R>),
    Over,
}

impl<F, R> Handed<F, R> {
    pub(super) fn new(operation: F, waker: Waker) -> Self {
        Self(Mutex::new(Stage::Waits(operation, waker)))
    }

    /// It is its turn; unless nobody waits any more.
    fn begins(&self) -> Option<F> {
        let mut stage = sync::lock(&self.0);
        match mem::replace(&mut *stage, Stage::Over) {
            Stage::Waits(operation, waker) => {
                *stage = Stage::Runs(waker);
                Some(operation)
            }
            _ => None,
        }
    }

    /// It has been run. Returns whom to wake, and a result that nobody waits for.
    fn ends(&self, result: thread::Result<R>) -> Result<Waker, thread::Result<R>> {
        let mut stage = sync::lock(&self.0);
        match mem::replace(&mut *stage, Stage::Over) {
            Stage::Runs(waker) => {
                *stage = Stage::Ended(result);
                Ok(waker)
            }
            _ => Err(result),
        }
    }

    /// The result, if it is there; else `waker` is called when it is.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<thread::Result<R>> {
        let mut copy = None;
        loop {
            let mut stage = sync::lock(&self.0);
            match &mut *stage {
                Stage::Waits(_, known) | Stage::Runs(known) => {
                    if known.will_wake(waker) {
                        return Poll::Pending;
                    }
                    if let Some(copy) = &mut copy {
                        // The old one is dropped after the lock was released.
                        mem::swap(known, copy);
                        return Poll::Pending;
                    }
                }
                Stage::Ended(_) => {
                    if let Stage::Ended(result) = mem::replace(&mut *stage, Stage::Over) {
                        return Poll::Ready(result);
                    }
                }
                Stage::Over => panic!("`Strand::with` was polled after it had ended"),
            }
            drop(stage);
            copy = Some(waker.clone());
        }
    }

    /// Nobody waits any more: what has not begun never begins.
    pub(super) fn cancel(&self) {
        let stage = mem::replace(&mut *sync::lock(&self.0), Stage::Over);
        // Outside of the lock.
        drop(stage);
    }
}

impl<T, F, R> Operation<T> for Handed<F, R>
where
    F: FnOnce(&mut T) -> R + Send,
    R: Send,
{
    fn run(this: &Arc<Linked<T, Self>>, state: &mut T) {
        let handed = &this.operation;
        let Some(operation) = handed.begins() else { return };
        let result = catch_unwind(AssertUnwindSafe(|| operation(state)));
        match handed.ends(result) {
            Ok(waker) => waker.wake(),
            Err(unwanted) => drop(unwanted),
        }
    }
}

/// An operation that nobody awaits.
pub(super) struct Posted<F>(Mutex<Option<F>>);

impl<F> Posted<F> {
    pub(super) fn new(operation: F) -> Self {
        Self(Mutex::new(Some(operation)))
    }
}

impl<T, F: FnOnce(&mut T) + Send> Operation<T> for Posted<F> {
    fn run(this: &Arc<Linked<T, Self>>, state: &mut T) {
        let operation = sync::lock(&this.operation.0).take();
        if let Some(operation) = operation {
            operation(state);
        }
    }
}

/// Waits for an operation that could not be run in place.
pub(super) struct With<'a, T, F, R> {
    strand: &'a Strand<T>,
    stage: WithStage<T, F, R>,
}

enum WithStage<T, F, R> {
    /// Not polled yet.
    Begins(Option<F>),
    Handed(Arc<Linked<T, Handed<F, R>>>),
}

impl<'a, T, F, R> With<'a, T, F, R> {
    pub(super) fn new(strand: &'a Strand<T>, operation: F) -> Self {
        Self { strand, stage: WithStage::Begins(Some(operation)) }
    }
}

/// Nothing in it is pinned.
impl<T, F, R> Unpin for With<'_, T, F, R> {}

impl<T, F, R> Future for With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let strand = self.strand;
        if let WithStage::Begins(operation) = &mut self.stage {
            let operation = operation.take().expect("it becomes another stage at once");
            strand.assert_not_inside(cx.waker());
            let handed = Linked::new(Handed::new(operation, cx.waker().clone()));
            self.stage = WithStage::Handed(handed.clone());
            strand.submit(handed);
        }
        let WithStage::Handed(handed) = &self.stage else { return Poll::Pending };
        match handed.operation.poll(cx.waker()) {
            Poll::Ready(Ok(output)) => Poll::Ready(output),
            Poll::Ready(Err(panic)) => resume_unwind(panic),
            Poll::Pending => {
                // It may have been moved into a `block_on` since.
                strand.assert_not_inside(cx.waker());
                Poll::Pending
            }
        }
    }
}

impl<T, F, R> Drop for With<'_, T, F, R> {
    fn drop(&mut self) {
        if let WithStage::Handed(handed) = &self.stage {
            handed.operation.cancel();
        }
    }
}
