//! The end of an executor: what is left is cancelled. And what the end of a runtime asks beside: how many tasks are left, and which
//! of them ask.
//!
//! A task that waits for the report of that end is not cancelled before it has it. Whoever cancels and comes across it puts it
//! *aside*, at once, where whoever polls these tasks when the report is out finds it: what else he drops may block him.

use std::panic::Location;
use std::time::Duration;

use async_task::Runnable;

use super::host;
use super::runner::Runner;
use super::state::State;
use crate::frame;
use crate::sync::{self, Instant, thread};
use crate::waking;

/// How long the end of an executor waits for tasks that other threads are just waking. They take some instructions; but
/// such a thread may be off its processor, and the end must come.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// What of an executor is on the calling thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Nothing.
    Nothing,
    /// A poll of a task, by what its waker points to; and which one of its runner's polls that is.
    Task(usize, u64),
    /// So many tasks, which wait for a `block_on` that is nested in them.
    Below(usize),
}

impl State {
    /// What of this executor the calling thread is in.
    pub(crate) fn is_on_stack(&self) -> Inside {
        let is_ours = |runner: &&Runner| runner.is_of(self.address()) && runner.beat().is_in_task();
        host::with_running(|top| {
            if let Some(runner) = top.filter(is_ours) {
                return Inside::Task(runner.task(), runner.beat().count());
            }
            // SAFETY: a runner runs only while its `poll`, which keeps it alive, is on this thread's stack.
            let below = |runner: *const ()| unsafe { runner.cast::<Runner>().as_ref() };
            match frame::here(|here| here.runners_below().filter_map(below).filter(is_ours).count()) {
                0 => Inside::Nothing,
                tasks => Inside::Below(tasks),
            }
        })
    }

    /// How many tasks have ended so far, and how many are left.
    pub(crate) fn census(&self) -> (usize, usize) {
        self.tasks.census()
    }

    /// The calling thread waits until no more tasks are left than are [enough](Self::is_enough): it parks while there are more. See
    /// [`Vigil`](super::vigil::Vigil).
    pub(crate) fn watch_ends(&self) {
        self.tasks.watch();
    }

    pub(crate) fn look_away(&self) {
        self.tasks.look_away();
    }

    /// So many tasks may be left from now on; who waits looks again.
    pub(crate) fn is_enough(&self, left: usize) {
        self.tasks.is_enough(left);
    }

    /// From now on it is known which futures are being dropped.
    pub(crate) fn watch_drops(&self) {
        self.drops.watch();
    }

    /// And from now on no more.
    pub(crate) fn ignore_drops(&self) {
        self.drops.ignore();
    }

    /// How many that thread has begun to drop since; and where those were spawned that it drops now, the innermost first.
    pub(crate) fn drops_of(&self, thread: thread::ThreadId) -> (u64, Vec<&'static Location<'static>>) {
        self.drops.of(thread)
    }

    /// Cancels all tasks that nobody polls right now.
    pub(crate) fn cancel_all(&self) {
        self.cancel_all_but(|_| false);
        while let Some(task) = self.pop_aside() {
            drop(task);
        }
    }

    /// The same but for those that are `kept`, by what their wakers point to: they are put aside.
    pub(crate) fn cancel_all_but(&self, kept: impl Fn(usize) -> bool) {
        self.tasks.wake_all();
        while let Some(task) = self.any_task() {
            if kept(address_of(&task)) {
                sync::lock(&self.aside).push(task);
            } else {
                drop(task);
            }
        }
    }

    /// Runs the scheduled tasks that may be `run` once more, and cancels all others, until none is left that nobody polls.
    pub(crate) fn see_off(&self, run: impl Fn(usize) -> bool) {
        while let Some(task) = self.pop_aside().or_else(|| self.any_task()) {
            if run(address_of(&task)) {
                // A panic out of a waker has said so, and is not the next task's.
                waking::call(|| host::run_beside(task));
            }
        }
    }

    /// Whether tasks are aside.
    pub(crate) fn has_aside(&self) -> bool {
        !sync::lock(&self.aside).is_empty()
    }

    fn pop_aside(&self) -> Option<Runnable> {
        sync::lock(&self.aside).pop()
    }

    /// The same as [`cancel_all`](Self::cancel_all) where nobody polls any and none is spawned: the executor is being dropped. Then a
    /// task that is left is one that another thread has marked as scheduled and not put anywhere yet. It cannot be dropped there,
    /// because wakers are called under other people's locks (D1); and left alone it would keep itself and this state for ever (P8). So
    /// this waits the few instructions until it is here. What comes still later is cancelled where it comes from, if it is a
    /// runtime's; what may borrow from something that is gone by then, or belongs to one thread, is left alone.
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

/// What tells a task from all others that are there.
fn address_of(task: &Runnable) -> usize {
    task.waker().data().addr()
}
