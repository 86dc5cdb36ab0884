//! The end of a runtime on its crew's threads: they stop, and drop the tasks that are left. The layer `end`
//! says when.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Crew, Pool};
use crate::ambient;
use crate::insight::DrainReport;
use crate::sync::{self, Instant, thread};

impl Crew {
    /// Returns whether tasks are accepted from the calling thread. Once the end has begun, they are in one of
    /// the crew's own tasks, until the crew is stopped: the end waits for that task, which is not finished,
    /// and then for the tasks that it has spawned.
    #[inline]
    pub(crate) fn accepts_from_here(&self) -> bool {
        !self.parting.is_closed() || !self.parting.is_stopped() && self.state.task_here().is_some()
    }

    /// Returns whether the calling thread is one of the crew's, or in one of its tasks.
    pub(crate) fn is_here(&self) -> bool {
        let me = thread::current().id();
        sync::lock(&self.roll).threads.iter().any(|(thread, _)| thread.id() == me)
            || self.state.task_here().is_some()
    }

    /// Has all workers stop after the polls that they are in. Wakes those that sleep, and waits for none.
    pub(crate) fn halt(&self) {
        self.parting.stop(&self.state);
        self.stop.notify(usize::MAX);
    }

    /// Cancels all tasks of a crew that was stopped, except those that a thread polls. If no thread of the
    /// crew is left, the call also waits for tasks that are just being scheduled, for [a limited
    /// time](crate::executor::State::cancel_to_the_last). Runs destructors, which may block.
    pub(crate) fn cancel_all(&self, pool: &Arc<Pool>) {
        let state = &self.state;
        pool.visit(|| if self.live() == 0 { state.cancel_to_the_last() } else { state.cancel_all() });
    }

    /// Drops the closures that block and will never begin, then [cancels all tasks](Self::cancel_all). The
    /// closures come first, because a worker may wait for one of them and hold what a task's destructor
    /// needs.
    fn clear_up(&self, pool: &Arc<Pool>) {
        pool.visit(|| pool.blocking_if_any().into_iter().for_each(|blocking| blocking.drop_doomed()));
        self.cancel_all(pool);
    }

    /// Starts the helper of the end: a thread that drops what is left beside the workers, which may all be
    /// stuck. It calls no hooks. If no thread can be started, the calling thread drops what is left.
    pub(crate) fn clear_up_beside(self: &Arc<Self>, pool: &Arc<Pool>) {
        let mut place = self.add_place(&mut sync::lock(&self.roll));
        let (crew, its_pool) = (self.clone(), pool.clone());
        let helps = move || {
            ambient::move_in();
            place.arrive();
            crew.clear_up(&its_pool);
            drop(place);
            if crew.live() == 0 {
                // A worker that left meanwhile was not the last thread.
                crew.cancel_all(&its_pool);
            }
        };
        if self.thread_builder(format!("{}-end", self.config.name)).spawn(helps).is_err() {
            self.clear_up(pool);
        }
    }

    /// Waits until a thread of the crew is gone, but for `limit` at most; may return early.
    pub(crate) fn wait_for_one(&self, limit: Duration) {
        drop(self.changed.wait_timeout(sync::lock(&self.roll), limit));
    }

    /// Waits until all threads of the crew are gone and the report is out, but not past the time `until`.
    pub(crate) fn wait_for_all(&self, until: Option<Instant>) {
        let mut roll = sync::lock(&self.roll);
        while roll.live > 0 || !self.parting.is_reported() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            roll = match left {
                Some(left) if left.is_zero() => break,
                Some(left) => self.changed.wait_timeout(roll, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(roll).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Publishes the report, and wakes all that wait for it.
    pub(crate) fn publish(&self, report: DrainReport) {
        self.parting.publish(report);
        // A thread that saw no report holds this lock until it waits.
        drop(sync::lock(&self.roll));
        self.changed.notify_all();
    }
}
