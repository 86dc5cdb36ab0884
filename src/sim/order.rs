//! [`Order`]: which of the ready tasks is polled next.

use std::collections::VecDeque;

use super::plan::{MOST_NOTED, PlannedPicks};
use super::rng::Rng;
use super::tasks::SimTasks;
use crate::simulated::ReadyTask;

/// Which of the ready tasks a simulation polls next: see [`Sim::order`](super::Sim::order).
///
/// `Pct` is the algorithm of Burckhardt and others (*A Randomized Scheduler with Probabilistic Guarantees of
/// Finding Bugs*, 2010), with a task in the place of a thread and a poll in the place of a step. Each task
/// has a random priority, and of the ready tasks, the one with the highest is polled. At `depth - 1` random
/// polls the priority of the task that is about to be polled falls below the first ones. A bug that needs
/// `depth` polls in a certain order is found with a probability that depends on the number of tasks and
/// polls, and not on how rare that order is if each choice is random. The length of a run is not known when
/// it begins, so the polls of the change are drawn with all orders of magnitude up to a million equally
/// likely. A task that wakes itself falls below all others, because it may wait for one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The task that became ready first, as in a runtime of the current thread.
    Fifo,
    /// Each of the ready tasks with the same probability.
    #[default]
    Random,
    /// The task with the highest priority. Each seed has other priorities. The number is the depth: 1 changes
    /// no priority, and few bugs need more than 3.
    Pct(u32),
}

/// Priorities that a task has from its spawn on.
const FIRST_PRIORITIES: u64 = 1 << 63;
/// Priorities after a change. That of a task which wakes itself is lower.
const CHANGED_PRIORITIES: u64 = 1 << 62;
/// Number of orders of magnitude, in powers of two, from which the polls of the changes are drawn.
const CHANGE_MAGNITUDES: u64 = 20;

/// An order in progress.
#[derive(Debug)]
pub(super) struct Choices {
    order: Order,
    rng: Rng,
    /// The number of polls so far.
    polls: u64,
    /// For `Pct`: the polls at which a priority changes, each with the next priority.
    changes: Vec<(u64, u64)>,
    /// The priority of the last task that woke itself.
    lowest: u64,
    /// The polls at which this order counts.
    planned: PlannedPicks,
    /// The polls at which it was not the task that was ready for longest.
    pub(super) picked: Vec<u64>,
}

impl Choices {
    pub(super) fn new(seed: u64, planned: PlannedPicks) -> Self {
        Self {
            order: Order::default(),
            rng: Rng::new(seed),
            polls: 0,
            changes: Vec::new(),
            lowest: CHANGED_PRIORITIES,
            planned,
            picked: Vec::new(),
        }
    }

    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
        let Order::Pct(depth) = order else { return };
        // Of its own: the priorities of the first tasks must not decide when they change.
        let mut rng = Rng::new(self.rng.next_u64());
        let change = |index| {
            let magnitude = 1 << rng.below(CHANGE_MAGNITUDES);
            (self.polls + magnitude + rng.below(magnitude), CHANGED_PRIORITIES + index)
        };
        self.changes = (1..u64::from(depth)).map(change).collect();
    }

    /// Returns the priority for a new task.
    pub(super) fn first_priority(&mut self) -> u64 {
        self.rng.next_u64() | FIRST_PRIORITIES
    }

    /// Returns the priority for a task that has woken itself.
    pub(super) fn next_lowest(&mut self) -> u64 {
        self.lowest -= 1;
        self.lowest
    }

    /// Returns the position of the task to poll next. There is at least one.
    pub(super) fn pick(&mut self, ready: &VecDeque<ReadyTask>, tasks: &mut SimTasks) -> usize {
        self.polls += 1;
        let at = self.choose(ready, tasks);
        if at == 0 || !self.planned.has(self.polls) {
            return 0;
        }
        if self.picked.len() < MOST_NOTED {
            self.picked.push(self.polls);
        }
        at
    }

    /// Returns whether a plan has left out choices.
    pub(super) fn is_planned(&self) -> bool {
        self.planned != PlannedPicks::All
    }

    fn choose(&mut self, ready: &VecDeque<ReadyTask>, tasks: &mut SimTasks) -> usize {
        match self.order {
            Order::Fifo => 0,
            Order::Random => self.rng.below(ready.len() as u64) as usize,
            Order::Pct(_) => {
                while let Some(at) = self.changes.iter().position(|(poll, _)| *poll == self.polls) {
                    let (_, priority) = self.changes.swap_remove(at);
                    let first = highest(ready, tasks);
                    if let Some(task) = tasks.get(ready[first].0) {
                        task.priority = priority;
                    }
                }
                highest(ready, tasks)
            }
        }
    }
}

/// Returns the position of the task with the highest priority; of equal ones, the first.
fn highest(ready: &VecDeque<ReadyTask>, tasks: &mut SimTasks) -> usize {
    let priority = |number| tasks.get(number).map_or(0, |task| task.priority);
    let priorities: Vec<u64> = ready.iter().map(|(number, _)| *number).map(priority).collect();
    let mut highest = 0;
    for (at, priority) in priorities.iter().enumerate() {
        if *priority > priorities[highest] {
            highest = at;
        }
    }
    highest
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use crate::sim::net::HostId;
    use std::panic::Location;

    use super::*;

    #[test]
    fn priorities_change_after_the_order_was_set_also_two_at_one_poll() {
        let (mut choices, mut tasks) = (Choices::new(1, PlannedPicks::All), SimTasks::default());
        tasks.add(1, Location::caller(), HostId::FIRST, choices.first_priority());
        let (runnable, _task) = async_task::spawn(async {}, |_| {});
        let ready = VecDeque::from([(1, runnable)]);

        choices.polls = 1 << CHANGE_MAGNITUDES;
        choices.set_order(Order::Pct(9));
        assert!(choices.changes.iter().all(|(poll, _)| *poll > choices.polls), "{choices:?}");

        choices.changes = vec![(choices.polls + 1, 3), (choices.polls + 1, 2)];
        assert_eq!(choices.pick(&ready, &mut tasks), 0);
        assert!(choices.changes.is_empty(), "{choices:?}");
        assert_eq!(tasks.get(1).map(|task| task.priority), Some(2));
    }
}
