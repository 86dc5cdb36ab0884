//! Closures that block. paceline's threads run them, also those that have not begun when the runtime ends;
//! this module adds the wait for them, and their results.

use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use paceline::blocking::unblock_with;

use super::Shared;
use crate::context::{Frame, Place};
use crate::task::{Cell, JoinError, JoinHandle, Observation, SpawnMeta};
use crate::time::Hold;

/// The unfinished closures of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    unfinished: AtomicUsize,
    /// No closure is accepted any more.
    is_closed: AtomicBool,
    lock: Mutex<()>,
    none_left: Condvar,
}

impl Blocking {
    /// Waits until all closures have finished, or until `deadline`.
    pub(super) fn wait(&self, deadline: Option<Instant>) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.unfinished.load(Ordering::SeqCst) > 0 {
            guard = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return,
                Some(left) => {
                    self.none_left.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.none_left.wait(guard).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Makes the runtime cancel closures that are spawned from now on. Called after its tasks were dropped,
    /// because their destructors may spawn closures.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn comes(&self) {
        self.unfinished.fetch_add(1, Ordering::SeqCst);
    }

    fn ends(&self) {
        if self.unfinished.fetch_sub(1, Ordering::SeqCst) == 1 {
            // A waiting thread has checked the count under the lock, and sleeps before the lock is free.
            drop(self.lock.lock());
            self.none_left.notify_all();
        }
    }
}

/// A closure that has not begun. It is dropped if no thread can be started for it.
struct Work<F: FnOnce() -> R, R> {
    f: Option<F>,
    cell: Arc<Cell<R>>,
    runtime: Arc<Shared>,
    observation: Observation,
    /// Released after the waiting task was woken.
    _hold: Hold,
}

/// Runs a closure on a thread of the runtime. After the runtime's end the closure is cancelled.
///
/// # Errors
///
/// Returns an error if there is no thread and none can be started.
#[track_caller]
pub(crate) fn spawn<F, R>(runtime: &Arc<Shared>, f: F, meta: SpawnMeta<'_>) -> io::Result<JoinHandle<R>>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let cell = Cell::new();
    let handle = JoinHandle::of(cell.clone());
    let entered = runtime.paceline().try_enter().filter(|_| !runtime.blocking.is_closed());
    let Some(_entered) = entered else {
        drop(f);
        let error = JoinError::cancelled(cell.id());
        cell.complete(Err(error));
        return Ok(handle);
    };
    runtime.blocking.comes();
    let observation = meta.with_id(cell.id().as_u64()).observe(size_of::<F>());
    let work = Work { f: Some(f), cell, runtime: runtime.clone(), observation, _hold: runtime.clock.hold() };
    // The system's kind would be `WouldBlock`, which means something else to callers.
    let task = unblock_with(move || work.run(), SpawnMeta::unobserved(Location::caller()));
    task.map_err(io::Error::other)?.detach();
    Ok(handle)
}

impl<F: FnOnce() -> R, R> Work<F, R> {
    fn run(mut self) {
        let Some(f) = self.f.take() else { return };
        self.runtime.config.hooks.blocking_thread(&self.runtime);
        let _frame = Frame::begin(&self.runtime, Some(self.cell.id()), Place::Outside);
        if self.cell.is_aborted() {
            return self.cancels(f);
        }
        let result = self.observation.inside(|| catch_unwind(AssertUnwindSafe(f)));
        self.cell.complete(result.map_err(|panic| JoinError::panic(self.cell.id(), panic)));
    }

    /// Drops the closure. A panic of a destructor becomes the result.
    fn cancels(&self, f: F) {
        let error = match catch_unwind(AssertUnwindSafe(|| drop(f))) {
            Ok(()) => JoinError::cancelled(self.cell.id()),
            Err(panic) => JoinError::panic(self.cell.id(), panic),
        };
        self.cell.complete(Err(error));
    }
}

impl<F: FnOnce() -> R, R> Drop for Work<F, R> {
    fn drop(&mut self) {
        if let Some(f) = self.f.take() {
            let _frame = Frame::begin(&self.runtime, Some(self.cell.id()), Place::Outside);
            self.cancels(f);
        }
        self.runtime.blocking.ends();
    }
}
