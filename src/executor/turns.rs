//! [`Turns`]: which task a runner polls next: the task in its slot, the surplus in its ring, a task from the
//! injector, or a task of another runner.

use async_task::Runnable;

use super::runner::Runner;
use super::state::State;
use crate::flight::FoundIn;
use crate::fork::Origin;

/// Number of tasks polled from the slot in a row before a task of the surplus gets its turn, because two
/// tasks that wake each other must not starve the others.
const STREAK: u32 = 32;
/// For one of this many surplus tasks, the injector comes before the ring, which may never run empty.
const INJECTOR_TURN: u32 = 61;

/// Upper bound of the tasks that are polled in order in one round.
pub(super) const ROUND: u32 = 61;

/// Selects the next task of one runner, and polls it.
pub(super) struct Turns {
    /// Number of tasks polled from the slot in a row.
    streak: u32,
    /// Number of tasks taken from the ring or the injector.
    surplus: u32,
    /// Whether tasks are polled in the order in which they became ready: all of them are in the injector, and
    /// are polled in rounds.
    pub(super) in_order: bool,
    /// Whether such a round is over, and the thread has to poll the reactor before the next.
    pub(super) is_over: bool,
}

impl Turns {
    pub(super) fn new(in_order: bool) -> Self {
        Self { streak: 0, surplus: 0, in_order, is_over: false }
    }

    /// Polls the next task: the one in the slot, unless it is the turn of the surplus; in order, the tasks of
    /// a round. Returns false if no task is left that this runner may take, and in order.
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
        next.map(|task| runner.run(task)).is_some()
    }

    /// Takes the next task of the surplus, from the ring before the injector, except for each 61st task. If
    /// both are empty, steals one, but a hosted runner only if it was told to search. Wakes a sleeper for the
    /// tasks that are left, if that is worth it; in any case if the runner is not hosted, because no deputy
    /// notices if it blocks. A standby takes tasks from its ring only.
    #[inline]
    fn next_surplus(&mut self, state: &State, runner: &Runner, is_hosted: bool) -> Option<Runnable> {
        if runner.is_standby() {
            return runner.ring.pop().ok().inspect(|_| runner.counters.found(FoundIn::Queue));
        }
        if runner.ring.is_empty() && !state.has_injected() {
            // Stealing takes a lock: only if nothing else is left to do.
            let searches = runner.orders.take_search();
            return if !is_hosted || searches { steal(state, runner) } else { None };
        }
        self.surplus = self.surplus.wrapping_add(1);
        let from_ring = || runner.ring.pop().ok();
        let from_injector = || state.take_injected(runner);
        let task = if self.surplus % INJECTOR_TURN == 0 {
            from_injector().or_else(from_ring)
        } else {
            from_ring().or_else(from_injector)
        }?;
        runner.counters.found(FoundIn::Queue);
        if runner.orders.take_search() || !is_hosted {
            share_all(state, runner);
        } else {
            state.invite(|| runner.ring.len() + state.injected());
        }
        Some(task)
    }
}

/// Polls the tasks of the injector, the oldest first. Returns whether the future of the `run` or further
/// tasks have to be polled next; false if there is neither. If the runner was told to search, also wakes a
/// sleeper for the tasks that are left.
fn poll_round(state: &State, runner: &Runner) -> bool {
    let origin = Origin::unwatched();
    for _ in 0..ROUND {
        if runner.orders.take_end_round() || !origin.is_here() {
            return true;
        }
        let Some(task) = state.pop_injected() else { return runner.orders.is_root_woken() };
        runner.counters.found(FoundIn::Queue);
        // Another thread in a `block_on` of the same runtime may be stuck in a task, and this thread may be
        // stuck next: so a sleeping runner is woken for the remaining tasks.
        if runner.orders.take_search() {
            share_all(state, runner);
        }
        runner.run(task);
    }
    true
}

/// Takes the task in the slot.
#[inline]
fn direct(runner: &Runner) -> Option<Runnable> {
    runner.slot.take().inspect(|_| runner.counters.found(FoundIn::Slot))
}

/// Steals a task of another runner, and wakes the next runner if tasks are left.
#[cold]
fn steal(state: &State, runner: &Runner) -> Option<Runnable> {
    let task = state.steal_for(runner)?;
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
