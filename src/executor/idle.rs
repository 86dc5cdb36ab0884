//! The runners and tickers of an executor that sleep, and waking one of them when there are tasks.
//!
//! Sleepers wait in a [`Line`](crate::line::Line), which has the proof that no wakeup is lost: the thread
//! that schedules a task makes the task visible and then calls a sleeper; a runner that is about to sleep
//! enters the line and then looks for tasks. A runner that was called searches for tasks, and calls the
//! next one if it leaves some.

use super::runner::Runner;
use super::sleeper::Sleeper;
use super::state::State;
use crate::line::{Called, Rank};
use crate::sync;

/// Calls reach all sleepers.
const ANY_RANK: Rank = Rank::Relief;
/// Calls reach only hosted runners: waking them runs no foreign code, and they come.
const HOSTS_ONLY: Rank = Rank::Host;

/// The result of [`State::enter_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum BeforeSleep {
    /// The thread may sleep.
    Sleeps,
    /// The thread may sleep after a call of [`State::notify_or_start_errand`], for the tasks that wait.
    LeavesTasks,
    /// The thread must not sleep: it has tasks to poll.
    HasTasks,
}

impl State {
    pub(super) fn any_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Wakes a sleeper, unless one that was called is on the way. Called after a task has become visible.
    /// Returns false if the line was empty.
    #[inline]
    pub(super) fn notify(&self) -> bool {
        Self::wake_called(self.idle.call(ANY_RANK))
    }

    /// Wakes a sleeper to share `left` tasks that the caller's own runner would poll otherwise, if that is
    /// [worth it](crate::line::Line::is_wake_worth). That is read without a fence, so this may miss a runner
    /// that goes to sleep at this moment. A miss costs parallelism but loses no task.
    #[inline]
    pub(super) fn invite(&self, left: impl FnOnce() -> usize) {
        if self.idle.is_wake_worth(ANY_RANK, left) {
            self.notify();
        }
    }

    /// Wakes a sleeper on a thread that must not run foreign code because it leads or is the deputy; even if
    /// another one was called and is on its way, because that one may be stuck. If only strangers sleep, a
    /// new thread wakes one of them. If that thread cannot be started, the deputy tries again. The caller
    /// must not hold a lock that the deputy takes.
    pub(crate) fn notify_or_start_errand(&self) {
        if Self::wake_called(self.idle.call_another(HOSTS_ONLY)) || !self.any_idle() {
            return;
        }
        // `None` while the executor is being dropped.
        if let Some(state) = self.itself.upgrade() {
            let _ = sync::start_errand(move || _ = Self::wake_called(state.idle.call_another(ANY_RANK)));
        }
    }

    /// Wakes the sleeper that was called, if any. Returns false if the line was empty, even if a called
    /// sleeper is on its way; true if others sleep and one is on its way.
    #[inline]
    fn wake_called(called: Called<Sleeper>) -> bool {
        match called {
            Called::NoSleeper => return false,
            Called::OnTheWay => {}
            Called::Wake(sleeper) => sleeper.wake(),
        }
        true
    }

    /// Puts the runner into the line, because its thread is about to sleep. If there are tasks to poll after
    /// all, or its own future, the runner has left the line again, and asks for a poll. If it asked before
    /// and was not polled, it stays out of the line, and its tasks go to others. A standby stays out of the
    /// line: the deputy wakes it for tasks that no taker comes for. Runs no foreign code and wakes no thread,
    /// so the caller may hold a lock.
    pub(super) fn enter_line(&self, runner: &Runner) -> BeforeSleep {
        if runner.requested.is_set() {
            // The runner asked to be polled and was not: the code that owns the `run` does not
            // poll it. So the runner must not be called, and the tasks in it, or for which it
            // was called, go to others.
            let leaves_tasks = self.inject_all(runner) | self.has_queued();
            return if leaves_tasks { BeforeSleep::LeavesTasks } else { BeforeSleep::Sleeps };
        }
        if !runner.is_standby() {
            runner.in_line.set(true);
            self.idle.enter(&runner.sleeper, runner.sleeper.rank());
        }
        if self.has_tasks_for(runner) || runner.orders.is_root_woken() {
            self.leave_line(runner);
            runner.requested.set(true);
            runner.orders.search();
            return BeforeSleep::HasTasks;
        }
        BeforeSleep::Sleeps
    }

    /// Takes the runner out of the line, because its thread is awake. Returns whether the runner was
    /// called: then it searches for tasks next.
    #[inline]
    pub(super) fn leave_line(&self, runner: &Runner) -> bool {
        let called = runner.in_line.take() && self.idle.leave(&runner.sleeper);
        if called {
            runner.orders.search();
        }
        called
    }

    /// Moves the tasks that wait in a runner to the injector, and wakes a runner for them, on a thread that
    /// must not run foreign code: see [`notify_or_start_errand`](Self::notify_or_start_errand).
    pub(crate) fn hand_over(&self, runner: &Runner) {
        if self.inject_all(runner) {
            self.notify_or_start_errand();
        }
    }

    /// Moves the tasks that wait in a runner to the injector, and wakes no runner. Returns whether there were
    /// any.
    pub(super) fn inject_all(&self, runner: &Runner) -> bool {
        // At most as many as there are now: the runner's thread may add tasks all the time.
        let tasks = std::iter::from_fn(|| runner.pop()).take(runner.ring.len() + 1);
        tasks.map(|task| self.inject(task)).count() > 0
    }
}
