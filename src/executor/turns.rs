//! [`Turns`]: which task a runner polls next: the task in its slot, the surplus in its ring and in the
//! injector, a task that is known to compute, or a task of another runner.
//!
//! | what | when |
//! |---|---|
//! | the slot | first, but not after 32 tasks from there in a row |
//! | the ring, the injector with what standbys have passed over there | in turns |
//! | the slow queue | when nothing of the above waits, and once in a tick |
//! | another runner's ring | when nothing waits, if the runner was told to search |
//!
//! A round ends when a tick is over, so the others wait for one poll of a task that computes.

use async_task::Runnable;

use super::runner::Runner;
use super::state::State;
use crate::flight::FoundIn;
use crate::fork::Origin;

/// Number of tasks polled from the slot in a row before a task of the surplus gets its turn, because two
/// tasks that wake each other must not starve the others.
const STREAK: u32 = 32;

/// Upper bound of the tasks that are polled in order in one round.
pub(super) const ROUND: u32 = 61;

/// Selects the next task of one runner, and polls it.
pub(super) struct Turns {
    /// Number of tasks polled from the slot in a row.
    streak: u32,
    /// Whether the last task of the surplus came from the ring, so that the injector comes first.
    was_in_ring: bool,
    /// Whether a task from the slow queue has taken the tick that ends next.
    was_slow: bool,
    /// Whether such a task comes before the rest of the surplus.
    is_slow_due: bool,
    /// Whether tasks are polled in the order in which they became ready: all of them are in the injector, and
    /// are polled in rounds.
    pub(super) in_order: bool,
    /// Whether such a round is over, and the thread has to poll the reactor before the next.
    pub(super) is_over: bool,
}

impl Turns {
    pub(super) fn new(in_order: bool) -> Self {
        Self { streak: 0, was_in_ring: false, was_slow: false, is_slow_due: true, in_order, is_over: false }
    }

    /// Ends a tick. After one that a slow task has taken, quick tasks get the next one to themselves.
    #[inline]
    pub(super) fn end_tick(&mut self) {
        self.is_slow_due = !self.was_slow;
        self.was_slow = false;
    }

    /// Begins a round where no deputy looks: each one is a tick.
    pub(super) fn begin_unwatched_round(&mut self) {
        self.is_slow_due = true;
    }

    /// Polls the next task: the one in the slot, unless it is the turn of the surplus; in order, the tasks of
    /// a round. Returns false if no task is left that this runner may take, and always in order.
    #[inline]
    pub(super) fn poll_next(&mut self, state: &State, runner: &Runner, is_hosted: bool) -> bool {
        let in_slot = if self.streak < STREAK { direct(runner) } else { None };
        let next = if in_slot.is_some() {
            self.streak += 1;
            in_slot
        } else {
            self.streak = 0;
            if self.in_order {
                self.is_over = poll_round(state, runner);
                return false;
            }
            // If the streak is over and no surplus waits, the next task is polled directly all the same.
            self.next_surplus(state, runner, is_hosted).or_else(|| direct(runner))
        };
        let Some(task) = next else { return false };
        runner.run(task);
        if runner.inspects.is_set() {
            self.end_inspected(runner);
        }
        true
    }

    /// Notes that the task from a queue that the runner inspects was polled.
    #[cold]
    fn end_inspected(&mut self, runner: &Runner) {
        runner.inspects.set(false);
        if !runner.is_standby() {
            // If it has taken the tick, quick tasks get the next one.
            (self.is_slow_due, self.was_slow) = (false, runner.orders.is_tick_over());
        }
    }

    /// Takes the next task of the surplus, from the ring and from the injector in turns; one from the slow queue
    /// first if it is due, and last otherwise. If there is none, steals one, but a hosted runner only if it was
    /// told to search. Wakes a sleeper for the tasks that are left, if that is worth it; in any case if the
    /// runner is not hosted, because no deputy notices if it blocks.
    #[inline]
    fn next_surplus(&mut self, state: &State, runner: &Runner, is_hosted: bool) -> Option<Runnable> {
        let has_left = state.has_left();
        if runner.ring.is_empty() && !state.has_injected() && !has_left {
            // Stealing takes a lock: only if nothing else is left to do.
            let searches = runner.orders.take_search();
            return if !is_hosted || searches { steal(state, runner) } else { None };
        }
        let task = if has_left || self.was_in_ring && state.has_injected() {
            self.take_shared(state, runner)?
        } else {
            self.was_in_ring = true;
            let task = runner.ring.pop().ok();
            task.or_else(|| state.pop_injected().inspect(|_| self.inspect(runner)))?
        };
        runner.counters.found(FoundIn::Queue);
        if runner.orders.take_search() || !is_hosted {
            share_all(state, runner);
        } else {
            state.invite(|| runner.ring.len() + state.queued());
        }
        Some(task)
    }

    /// Takes a task where tasks wait that are left to takers, or where it is the turn of the injector.
    #[inline(never)]
    fn take_shared(&mut self, state: &State, runner: &Runner) -> Option<Runnable> {
        let takes = !runner.is_standby();
        let slow = || if takes { state.pop_slow() } else { None };
        let passed = || if takes { state.pop_passed() } else { None };
        if let Some(task) = if self.is_slow_due { slow() } else { None } {
            runner.inspects.set(true);
            return Some(task);
        }
        let from_ring = if self.was_in_ring { None } else { runner.ring.pop().ok() };
        self.was_in_ring = from_ring.is_some();
        let shared = || passed().or_else(|| state.pop_injected().inspect(|_| self.inspect(runner)));
        let quick = from_ring.or_else(shared).or_else(|| runner.ring.pop().ok());
        quick.or_else(|| slow().inspect(|_| runner.inspects.set(true)))
    }

    /// Has the task that a standby takes from the injector inspected.
    fn inspect(&self, runner: &Runner) {
        if runner.is_standby() {
            runner.inspects.set(true);
        }
    }
}

/// Polls the tasks of the injector, the oldest first, until a tick is over. Returns whether the future of the
/// `run` or further tasks have to be polled next; false if there is neither. If the runner was told to search,
/// also wakes a sleeper for the tasks that are left.
fn poll_round(state: &State, runner: &Runner) -> bool {
    let origin = Origin::unwatched();
    for _ in 0..ROUND {
        let Some(task) = state.pop_injected() else { return runner.orders.is_root_woken() };
        runner.counters.found(FoundIn::Queue);
        // Another thread in a `block_on` of the same runtime may be stuck in a task, and this thread may be
        // stuck next: so a sleeping runner is woken for the remaining tasks.
        if runner.orders.take_search() {
            share_all(state, runner);
        }
        runner.run(task);
        if runner.orders.take_tick() || !origin.is_here() {
            return true;
        }
    }
    true
}

/// Takes the task in the slot.
#[inline]
fn direct(runner: &Runner) -> Option<Runnable> {
    runner.slot.take().inspect(|_| runner.counters.found(FoundIn::Slot))
}

/// Steals a task of another runner, and wakes the next runner if tasks are left. A standby steals none.
#[cold]
fn steal(state: &State, runner: &Runner) -> Option<Runnable> {
    let task = if runner.is_standby() { None } else { state.steal_for(runner) }?;
    runner.counters.found(FoundIn::Stolen);
    share_all(state, runner);
    Some(task)
}

/// Wakes the next runner if tasks are left. Called when a runner that was woken to search has found a task,
/// and when a runner has stolen one.
#[cold]
fn share_all(state: &State, runner: &Runner) {
    if state.has_tasks_for(runner) {
        state.notify();
    }
}
