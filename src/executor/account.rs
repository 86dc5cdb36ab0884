//! [`Account`]: what a deputy remembers of an executor from one look to the next. [`Queues`]: the executor's
//! waiting tasks, as the deputy sees them in one look.
//!
//! A task waits for a thread that is expected to come: tasks in a runner's slot or ring for the runner's
//! own thread, tasks in the queues that runners share for a sleeper that was notified, or for a runner that
//! is awake. Each of these threads may be stuck instead. So the deputy compares two looks. If a runner made
//! no progress, its tasks are moved from slot and ring to the injector. If a queue did not move, another
//! thread is woken or added.

use std::sync::Arc;

use super::runner::Runner;
use super::state::State;
use crate::stage::Stage;

/// The state of an executor at the last look.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Number of tasks taken so far from the injector and from the queues for takers, if tasks waited there.
    taken: [Option<u64>; 2],
    /// Runners with tasks of their own, and their stages.
    laden: Vec<(*const Runner, Stage)>,
}

/// The tasks in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// There are none.
    #[default]
    None,
    /// There are some, and there were none at the last look, or one was taken since.
    Some,
    /// There are some, as at the last look, and none was taken since.
    Untouched,
}

/// The waiting tasks of one executor, as plain data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// The tasks in the injector, or that will be there when the tasks of stuck runners have been moved.
    pub(crate) injected: Waiting,
    /// The tasks in the queues from which only takers take.
    pub(crate) left: Waiting,
    /// Whether a taker or ticker sleeps.
    pub(crate) is_any_idle: bool,
    /// Whether a runner with tasks of its own has made no progress since the last look.
    pub(crate) has_stuck: bool,
}

impl Queues {
    /// Returns whether tasks wait that a taker could take.
    pub(crate) fn has_tasks(&self) -> bool {
        self.injected != Waiting::None || self.left != Waiting::None
    }

    /// Returns whether tasks waited in a queue at the last look, too, and none was taken from it since.
    pub(crate) fn is_untouched(&self) -> bool {
        self.injected == Waiting::Untouched || self.left == Waiting::Untouched
    }
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
        let [taken, taken_left] = self.taken();
        let compare = |has_tasks: bool, taken: u64, last: Option<u64>| match has_tasks {
            false => Waiting::None,
            true if last == Some(taken) => Waiting::Untouched,
            true => Waiting::Some,
        };
        let has_stuck = !stuck.is_empty();
        let injected = compare(self.has_injected() || has_stuck, taken, last.taken[0]);
        let left = compare(self.has_left(), taken_left, last.taken[1]);
        let remembered = |now: Waiting, taken| (now != Waiting::None).then_some(taken);
        *last = Account { taken: [remembered(injected, taken), remembered(left, taken_left)], laden };
        (Queues { injected, left, is_any_idle: self.any_idle(), has_stuck }, stuck)
    }

    /// Returns the flags about the queues where no thread runs the executor.
    pub(crate) fn unwatched_queues(&self) -> Queues {
        let waiting = |has_tasks: bool| if has_tasks { Waiting::Some } else { Waiting::None };
        let (injected, left) = (waiting(self.has_injected()), waiting(self.has_left()));
        Queues { injected, left, is_any_idle: self.any_idle(), has_stuck: false }
    }

    /// Returns whether another look of the deputy could find tasks to hand over: tasks in the queues that
    /// a sleeper could take.
    pub(crate) fn is_open(&self) -> bool {
        self.has_queued() && self.any_idle()
    }
}
