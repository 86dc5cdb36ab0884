//! The end of an executor cancels the tasks that are left. For the end of a runtime, this file also answers
//! how many tasks are left, and what of the executor is on the stack of the thread that ends the runtime.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::host;
use super::runner::{Runner, TaskPoll};
use super::state::State;
use super::tasks::Ticket;
use crate::insight::Grouping;
use crate::sync::{Instant, thread};

/// How long the end of an executor waits for tasks that other threads are just scheduling. Scheduling takes
/// a few instructions, but such a thread may not be running, and the end must not wait for ever.
const STRAGGLERS: Duration = Duration::from_millis(100);

impl State {
    /// Returns the poll, or the drop, of a task of this executor that is at the top of the calling thread's
    /// stack. A foreign task is none of the executor's.
    pub(crate) fn task_here(&self) -> Option<TaskPoll> {
        let is_ours = |runner: &&Runner| runner.is_of(self.address()) && runner.stage().is_at_work();
        let poll = host::with_running(|top| top.filter(is_ours).and_then(Runner::task_poll));
        poll.filter(|poll| poll.spawned_at.is_some())
    }

    /// Returns whether a task of this executor is on the calling thread's stack, at the top or below a nested
    /// `block_on`. A foreign task is none of the executor's.
    pub(crate) fn is_in_task(&self) -> bool {
        let (here, _) = host::place();
        let polls = |runner: &Arc<Runner>| runner.task_poll().filter(|_| runner.is_on(here))?.spawned_at;
        self.find_in_runners(polls).is_some()
    }

    /// Returns how many tasks have ended so far, and how many are left.
    pub(crate) fn census(&self) -> (usize, usize) {
        self.tasks.census()
    }

    /// Makes the calling thread the one that waits for tasks to end: the end that reaches the
    /// [threshold](Self::set_threshold) unparks it. See [`Vigil`](super::vigil::Vigil).
    pub(crate) fn watch_ends(&self) {
        self.tasks.watch();
    }

    /// Ends the wait that [`watch_ends`](Self::watch_ends) began.
    pub(crate) fn unwatch_ends(&self) {
        self.tasks.unwatch();
    }

    /// Sets how many tasks may be left when the wait ends, and wakes the waiting thread so that it counts
    /// again.
    pub(crate) fn set_threshold(&self, left: usize) {
        self.tasks.set_threshold(left);
    }

    /// Starts to note which futures are being dropped: see [`drops_of`](Self::drops_of).
    pub(crate) fn watch_drops(&self) {
        self.drops.watch();
    }

    /// Stops noting and recording drops.
    pub(crate) fn ignore_drops(&self) {
        self.drops.ignore();
    }

    /// Notes that the calling thread begins to drop a task's future. Called while drops are watched.
    #[cold]
    pub(super) fn begin_drop(&self, spawned_at: &'static Location<'static>, ticket: Ticket) {
        self.drops.begin(spawned_at, self.tasks.listed_since(ticket));
    }

    /// Notes that the calling thread is done with that drop.
    #[cold]
    pub(super) fn end_drop(&self, ticket: Ticket) {
        self.drops.end(ticket != Ticket::NONE);
    }

    /// Starts to record which tasks are dropped: see [`recorded_drops`](Self::recorded_drops).
    pub(crate) fn record_drops(&self) {
        self.drops.record();
    }

    /// Stops recording. Returns the tasks that were dropped since [`record_drops`](Self::record_drops).
    pub(crate) fn recorded_drops(&self) -> Grouping {
        self.drops.recorded()
    }

    /// Returns how many drops that thread has begun since [`watch_drops`](Self::watch_drops), and where the
    /// tasks that it drops now were spawned, the innermost first.
    pub(crate) fn drops_of(&self, thread: thread::ThreadId) -> (u64, Vec<&'static Location<'static>>) {
        self.drops.of(thread)
    }

    /// Cancels all tasks that are not being polled right now: wakes the listed tasks, and drops scheduled
    /// tasks until none is left. A task that is being polled is scheduled again when that poll returns
    /// `Pending`, which may be after this call.
    pub(crate) fn cancel_all(&self) {
        self.tasks.wake_all();
        while let Some(task) = self.any_task() {
            drop(task);
        }
    }

    /// Cancels the tasks of an executor that is being dropped, and waits at most [`STRAGGLERS`] until the
    /// last one is gone. The caller ensures that no task is polled and none is spawned.
    ///
    /// If a task is left after [`cancel_all`](Self::cancel_all), another thread has marked it as scheduled
    /// and not queued it yet. That thread must not drop the task, because wakers are called under foreign
    /// locks. If no thread dropped it, the task would keep itself and this state alive for ever. So
    /// this call waits until the task is queued. That takes a few instructions, or longer if the other thread
    /// is not running.
    ///
    /// A runtime's executor loses no task, because its injector is closed after the wait: a task that is
    /// scheduled later is dropped by a thread that is started for it. The tasks of other executors may borrow
    /// from values that are gone by then, or may belong to one thread, so a task that comes after the wait is
    /// left alone, and leaked.
    pub(crate) fn cancel_to_the_last(&self) {
        self.cancel_all();
        let start = Instant::now();
        while self.unfinished().is_some_and(|left| left > 0) && start.elapsed() < STRAGGLERS {
            match self.any_task() {
                Some(task) => drop(task),
                None => thread::yield_now(),
            }
        }
        if !self.of_runtime {
            return;
        }
        self.injector.close();
        while let Some(task) = self.any_task() {
            drop(task);
        }
    }
}
