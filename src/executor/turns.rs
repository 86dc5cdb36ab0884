//! [`Turns`]: which task a runner polls next: the task in its slot, the surplus in its ring and in the
//! injector, a task that is known to compute, or a task of another runner.
//!
//! | what | when |
//! |---|---|
//! | the slot | first, but not after 32 tasks from there in a row |
//! | the ring, the injector with what standbys have passed over there | in turns |
//! | the slow queue | when nothing of the above waits; and once in a round that began in another tick than the last such poll ended |
//! | another runner's ring | when nothing waits, if the runner was told to search |
//!
//! A round ends when a tick is over, so the others wait for one poll of a task that computes.

use async_task::Runnable;

use super::host::Host;
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
    /// The tick in which the last poll of a task from the slow queue ended.
    slow_until: u64,
    /// Whether a task from the slow queue comes before the rest of the surplus.
    is_slow_due: bool,
    /// Whether tasks are polled in the order in which they became ready: all of them are in the injector, and
    /// are polled in rounds.
    pub(super) in_order: bool,
    /// Whether such a round is over, and the thread has to poll the reactor before the next.
    pub(super) is_over: bool,
}

impl Turns {
    pub(super) fn new(in_order: bool) -> Self {
        Self { streak: 0, was_in_ring: false, slow_until: 0, is_slow_due: false, in_order, is_over: false }
    }

    /// Begins a round in this tick. Where no deputy looks, each round is a tick.
    #[inline]
    pub(super) fn begin_round(&mut self, tick: Option<u64>) {
        self.is_slow_due = tick != Some(self.slow_until);
    }

    /// Polls the next task: the one in the slot, unless it is the turn of the surplus; in order, the tasks of
    /// a round. Returns false if no task is left that this runner may take, and always in order.
    #[inline]
    pub(super) fn poll_next(
        &mut self,
        state: &State,
        runner: &Runner,
        host: &Host,
        is_hosted: bool,
        tick: Option<u64>,
    ) -> bool {
        let in_slot = if self.streak < STREAK { direct(runner) } else { None };
        if let Some(task) = in_slot {
            self.streak += 1;
            runner.run(task);
            return true;
        }
        self.streak = 0;
        if self.in_order {
            self.is_over = poll_round(state, runner, host, tick);
            return false;
        }
        // If the streak is over and no surplus waits, the next task is polled directly all the same.
        self.poll_surplus(state, runner, host, is_hosted)
            || direct(runner).map(|task| runner.run(task)).is_some()
    }

    /// Polls the next task of the surplus. If there is none, steals one, but a hosted runner only if it was
    /// told to search. Wakes a sleeper for the tasks that are left, if that is worth it; in any case if the
    /// runner is not hosted, because no deputy notices if it blocks. A standby polls tasks from its ring and,
    /// if they were quick, from the injector.
    #[inline]
    fn poll_surplus(&mut self, state: &State, runner: &Runner, host: &Host, is_hosted: bool) -> bool {
        let has_injected = state.has_injected();
        let has_left = state.has_left();
        if runner.ring.is_empty() && !has_injected && !has_left {
            // Stealing takes a lock: only if nothing else is left to do.
            let searches = !runner.is_standby() && (runner.orders.take_search() || !is_hosted);
            return searches && steal(state, runner);
        }
        if self.is_slow_due && self.poll_slow(state, runner, host, is_hosted) {
            return true;
        }
        let from_ring = || Some((runner.ring.pop().ok()?, false));
        let from_injector = || {
            let passed = if runner.is_standby() { None } else { state.pop_passed() };
            Some((passed.or_else(|| state.pop_injected())?, true))
        };
        let next = if self.was_in_ring && (has_injected || has_left) {
            from_injector().or_else(from_ring)
        } else {
            from_ring().or_else(from_injector)
        };
        let Some((task, was_injected)) = next else { return self.poll_slow(state, runner, host, is_hosted) };
        self.was_in_ring = !was_injected;
        share(state, runner, is_hosted);
        if was_injected && runner.is_standby() {
            runner.run_inspected(task)
        } else {
            runner.run(task)
        }
        true
    }

    /// Polls the oldest task of the slow queue, unless the runner is a standby. Returns false if there is
    /// none.
    #[cold]
    fn poll_slow(&mut self, state: &State, runner: &Runner, host: &Host, is_hosted: bool) -> bool {
        let task = if runner.is_standby() { None } else { state.pop_slow() };
        let Some(task) = task else { return false };
        share(state, runner, is_hosted);
        runner.run_inspected(task);
        self.is_slow_due = false;
        self.slow_until = host.tick().unwrap_or(0);
        true
    }
}

/// Polls the tasks of the injector, the oldest first, until a tick is over. Returns whether the future of the
/// `run` or further tasks have to be polled next; false if there is neither. If the runner was told to search,
/// also wakes a sleeper for the tasks that are left.
fn poll_round(state: &State, runner: &Runner, host: &Host, tick: Option<u64>) -> bool {
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
        if host.tick() != tick || !origin.is_here() {
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

/// Counts a task from a queue, which is polled next, and wakes a sleeper for the tasks that are left, if that
/// is worth it or the runner was told to search.
#[inline]
fn share(state: &State, runner: &Runner, is_hosted: bool) {
    runner.counters.found(FoundIn::Queue);
    if runner.orders.take_search() || !is_hosted {
        share_all(state, runner);
    } else {
        state.invite(|| runner.ring.len() + state.queued());
    }
}

/// Steals a task of another runner and polls it, and wakes the next runner if tasks are left. Returns false
/// if there is none.
#[cold]
fn steal(state: &State, runner: &Runner) -> bool {
    let Some(task) = state.steal_for(runner) else { return false };
    runner.counters.found(FoundIn::Stolen);
    share_all(state, runner);
    runner.run(task);
    true
}

/// Wakes the next runner if tasks are left. Called when a runner that was woken to search has found a task,
/// and when a runner has stolen one.
#[cold]
fn share_all(state: &State, runner: &Runner) {
    if state.has_tasks_for(runner) {
        state.notify();
    }
}
