//! Who of an executor's runners and tickers sleeps, and waking one of them when there are tasks (N2).
//!
//! They sleep in a [`Line`](crate::line::Line), which has the argument why no task is lost: who schedules makes the task visible and
//! calls; who rests enters, and looks for tasks after that. Who was called searches, and calls the next one if it leaves some.

use super::runner::Runner;
use super::sleeper::Sleeper;
use super::state::State;
use crate::line::{Called, Rank};
use crate::sync::thread;

/// Of those that sleep: whoever it is, and who is sure to come.
const ANYBODY: Rank = Rank::Relief;
const SURE: Rank = Rank::Host;

impl State {
    /// Whether a runner or ticker sleeps.
    pub(super) fn any_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// A task is visible: wakes one that sleeps, unless somebody is on the way. False if nobody sleeps.
    #[inline]
    pub(super) fn notify(&self) -> bool {
        Self::wakes(self.idle.call(ANYBODY))
    }

    /// The same for tasks that the caller's own runner will poll if nobody else does: without the fence. One that goes to
    /// sleep at this very moment may be missed, which costs some parallelism and no task.
    #[inline]
    pub(super) fn invite(&self) {
        if !self.idle.is_empty() && !self.idle.somebody_comes() && self.gain.is_likely() {
            self.invite_one();
        }
    }

    #[cold]
    fn invite_one(&self) {
        self.gain.calls();
        if !Self::wakes(self.idle.invite(ANYBODY)) {
            self.gain.called_nobody();
        }
    }

    /// The same as [`notify`](Self::notify) from a thread that must not run anybody's code, because it leads or watches: a
    /// stranger is called on a thread of its own. Where none is to be had the deputy tries again.
    pub(super) fn notify_from_afar(&self) {
        if !Self::wakes(self.idle.call(SURE)) && self.any_idle() {
            self.run_errand(|state| _ = state.notify());
        }
    }

    /// The deputy found that tasks wait although somebody was called, perhaps: the next one is.
    pub(super) fn notify_another(&self) {
        if !Self::wakes(self.idle.call_another(SURE)) && self.any_idle() {
            self.run_errand(|state| _ = Self::wakes(state.idle.call_another(ANYBODY)));
        }
    }

    fn run_errand(&self, errand: fn(&State)) {
        if let Some(state) = self.itself.upgrade() {
            let _ = thread::Builder::new().name("paceline-errand".into()).spawn(move || errand(&state));
        }
    }

    /// False if nobody was there to be called.
    #[inline]
    fn wakes(called: Called<Sleeper>) -> bool {
        match called {
            Called::Nobody => return false,
            Called::OnTheWay => {}
            Called::Wake(sleeper) => sleeper.wake(),
        }
        true
    }

    /// Who polls the runner is about to sleep. False if there are tasks to poll, after all. Runs nobody's code.
    pub(super) fn rest(&self, runner: &Runner) -> bool {
        if runner.asked.is_set() {
            // It is hosted here, but whoever owns its future does not poll it: it is nobody to be called, and tasks
            // that this thread left here, or for which it was called, are for others. It leads, perhaps.
            if self.empty(runner) | self.has_surplus() {
                self.notify_from_afar();
            }
            return true;
        }
        if runner.is_reserve() {
            // It would not take what it is called for. What is its own is put there by its own thread, which is this one.
            let rests = !runner.has_tasks() && !runner.root_woken.is_set();
            runner.asked.set(!rests);
            return rests;
        }
        runner.rests.set(true);
        self.idle.enter(&runner.sleeper, runner.sleeper.rank());
        if self.has_tasks_for(runner) || runner.root_woken.is_set() {
            self.rise(runner);
            runner.asked.set(true);
            runner.searches.set(true);
            return false;
        }
        runner.rested.set(true);
        true
    }

    /// It is awake. True if it was called: then it looks for tasks next.
    #[inline]
    pub(super) fn rise(&self, runner: &Runner) -> bool {
        let called = runner.rests.take() && self.idle.leave(&runner.sleeper);
        if called {
            runner.searches.set(true);
        }
        called
    }

    /// Moves what waits in a runner to where any other finds it, busy or idle.
    pub(super) fn hand_over(&self, runner: &Runner) {
        if self.empty(runner) {
            self.notify();
        }
    }

    /// The same from a thread that must not run anybody's code.
    pub(super) fn hand_over_from_afar(&self, runner: &Runner) {
        if self.empty(runner) {
            self.notify_from_afar();
        }
    }

    /// True if something was there.
    pub(super) fn empty(&self, runner: &Runner) -> bool {
        // No more than there are now: its thread may be putting more here all the time.
        let tasks = std::iter::from_fn(|| runner.pop()).take(runner.ring.len() + 1);
        tasks.map(|task| self.inject(task)).count() > 0
    }
}
