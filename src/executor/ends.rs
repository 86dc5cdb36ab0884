//! The end of an executor cancels the tasks that are left. For the end of a runtime, this file also answers
//! in which task the calling thread is.

use std::time::Duration;

use super::host;
use super::state::State;
use crate::sync::{Instant, Ordering, thread};

/// How long the end of an executor waits for tasks that other threads are just scheduling. Scheduling takes
/// a few instructions, but such a thread may not be running, and the end must not wait for ever.
const STRAGGLERS: Duration = Duration::from_millis(100);

impl State {
    /// Returns a task of this executor that is on the calling thread's stack, at its top or below a nested
    /// `block_on`, by the address that the task's waker points to. Foreign tasks are none of the executor's.
    #[cold]
    pub(crate) fn task_here(&self) -> Option<usize> {
        let (here, _) = host::place();
        self.find_in_runners(|runner| {
            let is_here = runner.thread.load(Ordering::Relaxed) == here;
            let poll = runner.poll.task_poll().filter(|poll| is_here && poll.spawned_at.is_some())?;
            Some(poll.task)
        })
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
    /// A runtime's executor loses no task, because its queues are closed after the wait: a task that is
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
        self.close();
        while let Some(task) = self.any_task() {
            drop(task);
        }
    }
}
