//! Closures that block. paceline's threads run them; this module adds the waits: the end of a runtime waits
//! for running closures, cancels those that have not begun, and runs those that must not be lost.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use paceline::blocking::unblock_with;

use super::{Shared, fence};
use crate::context::{Frame, Place};
use crate::task::{Cell, JoinError, JoinHandle, Observation, SpawnMeta};
use crate::time::Hold;

/// What happens to a closure that has not begun when its runtime ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtTheEnd {
    IsCancelled,
    #[allow(dead_code, reason = "for `fs`, if that is compiled in")]
    Runs,
}

/// The unfinished closures of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    unfinished: AtomicUsize,
    /// Of these, those that have not begun.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Blocking {
    /// Waits until all closures have finished, or until `deadline`. Closures that had not begun have been
    /// cancelled.
    pub(super) fn wait(&self, deadline: Option<Instant>) {
        self.wait_until(deadline, || self.unfinished.load(Ordering::SeqCst) == 0);
    }

    /// Waits for closures that have not begun and that a thread is about to run: as many as there may be
    /// threads.
    pub(super) fn settle(&self, limit: Duration, threads: usize) {
        self.wait_until(Some(Instant::now() + limit), || {
            let waiting = self.waiting.load(Ordering::SeqCst);
            waiting == 0 || self.unfinished.load(Ordering::SeqCst).saturating_sub(waiting) >= threads
        });
    }

    fn wait_until(&self, deadline: Option<Instant>, is_so: impl Fn() -> bool) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !is_so() {
            guard = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return,
                Some(left) => {
                    self.changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn comes(&self) {
        self.unfinished.fetch_add(1, Ordering::SeqCst);
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    fn begins(&self) {
        self.leaves(&self.waiting);
    }

    fn ends(&self) {
        self.leaves(&self.unfinished);
    }

    fn leaves(&self, these: &AtomicUsize) {
        if these.fetch_sub(1, Ordering::SeqCst) == 1 {
            // A waiting thread has checked the count under the lock, and sleeps before the lock is free.
            drop(self.lock.lock());
            self.changed.notify_all();
        }
    }
}

/// A closure that has not begun. At the end of its runtime it is dropped.
struct Work<F: FnOnce() -> R, R> {
    f: Option<F>,
    cell: Arc<Cell<R>>,
    runtime: Arc<Shared>,
    at_the_end: AtTheEnd,
    observation: Observation,
    /// Released after the waiting task was woken.
    _hold: Hold,
}

#[track_caller]
pub(crate) fn spawn<F, R>(
    runtime: &Arc<Shared>,
    f: F,
    meta: SpawnMeta<'_>,
    at_the_end: AtTheEnd,
) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let cell = Cell::new();
    let handle = JoinHandle::of(cell.clone());
    let entered = runtime.paceline().try_enter().filter(|_| !runtime.is_shut_down());
    let Some(_entered) = entered else {
        drop(f);
        let error = JoinError::cancelled(cell.id());
        cell.complete(Err(error));
        return handle;
    };
    runtime.blocking.comes();
    let observation = meta.with_id(cell.id().as_u64()).observe(size_of::<F>());
    let work = Work {
        f: Some(f),
        cell,
        runtime: runtime.clone(),
        at_the_end,
        observation,
        _hold: runtime.clock.hold(),
    };
    unblock_with(move || work.run(), SpawnMeta::unobserved(Location::caller())).detach();
    handle
}

impl<F: FnOnce() -> R, R> Work<F, R> {
    fn run(mut self) {
        if let Some(f) = self.f.take() {
            self.runtime.blocking.begins();
            self.runs(f);
        }
    }

    fn runs(&mut self, f: F) {
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
        let f = self.f.take();
        if f.is_some() {
            self.runtime.blocking.begins();
        }
        match (f, self.at_the_end) {
            (None, _) => {}
            (Some(f), AtTheEnd::Runs) => fence::outside(|| self.runs(f)),
            (Some(f), AtTheEnd::IsCancelled) => {
                let _frame = Frame::begin(&self.runtime, Some(self.cell.id()), Place::Outside);
                self.cancels(f);
            }
        }
        self.runtime.blocking.ends();
    }
}
