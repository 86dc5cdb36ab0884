//! [`Account`]: what a deputy remembers of an executor from one look to the next. [`Queues`]: the executor's
//! waiting tasks, as the deputy sees them in one look.
//!
//! A task waits for a thread that is expected to come: tasks in a runner's slot or ring for the runner's
//! own thread, tasks in the injector for a sleeper that was notified. Each of these threads may be stuck
//! instead. So the deputy compares two looks. If a runner made no progress, its tasks are moved from slot
//! and ring to the injector. If the injector did not move, another sleeper is woken.

use std::sync::Arc;

use super::runner::Runner;
use super::state::State;
use crate::stage::Stage;

/// The state of an executor at the last look.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Number of tasks taken from the injector so far, if tasks waited there.
    taken: Option<u64>,
    /// Runners with tasks of their own, and their stages.
    laden: Vec<(*const Runner, Stage)>,
}

/// The waiting tasks of one executor, as plain data.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    /// Whether tasks wait in the injector, or will when the tasks of stuck runners have been moved there.
    pub(crate) has_injected: bool,
    /// Whether tasks waited at the last look, too, and none was taken since.
    pub(crate) is_untouched: bool,
    /// Whether a runner or ticker sleeps.
    pub(crate) is_any_idle: bool,
    /// Whether a runner with tasks of its own has made no progress since the last look.
    pub(crate) has_stuck: bool,
}

impl State {
    /// Compares the executor with `last`, and stores its present state there. Returns flags about the queues,
    /// and the runners that have tasks of their own and made no progress since `last`.
    pub(crate) fn queues(&self, last: &mut Account) -> (Queues, Vec<Arc<Runner>>) {
        let (mut laden, mut stuck) = (Vec::new(), Vec::new());
        self.find_in_runners(|runner| -> Option<()> {
            let now = (std::ptr::from_ref(&**runner), runner.poll.stage());
            if runner.has_tasks() {
                if last.laden.contains(&now) {
                    stuck.push(runner.clone());
                } else {
                    laden.push(now);
                }
            }
            None
        });
        let has_injected = self.has_injected() || !stuck.is_empty();
        let taken = has_injected.then(|| self.taken());
        let is_untouched = has_injected && last.taken == taken;
        *last = Account { taken, laden };
        let queues =
            Queues { has_injected, is_untouched, is_any_idle: self.any_idle(), has_stuck: !stuck.is_empty() };
        (queues, stuck)
    }

    /// Returns whether another look of the deputy could find tasks to hand over: tasks in the injector that a
    /// sleeper could take.
    pub(crate) fn is_open(&self) -> bool {
        self.has_injected() && self.any_idle()
    }
}
