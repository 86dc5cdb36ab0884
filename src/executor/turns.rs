//! [`Turns`]: which task a runner polls next, of the one in its slot, the surplus in its ring, what is in the injector, and what others
//! have.

use std::mem;
use std::time::Duration;

use async_task::Runnable;

use super::runner::Runner;
use super::state::State;
use crate::gain::Trial;
use crate::sync::Instant;

/// What a round of tasks may take, more or less, before its thread looks at the reactor: so long an event waits behind tasks that
/// do not stop. A look costs a microsecond or two.
pub(super) const ROUND: Duration = Duration::from_micros(200);
/// Tasks polled directly one after the other before one of the surplus gets its turn (D3).
const STREAK: u32 = 32;
/// Where so many tasks of the surplus, one after the other, each woke the same task and no other, it is a parent to which its children
/// report: it *gathers*.
const SINGLES: u32 = 4;
/// It waits for so many of them then, where there are more and they are quick, and at most until the round is over.
const GATHERED: u32 = 16;
/// Every so many tasks of the surplus the injector comes before the ring, which may never run empty.
const INJECTOR_TURN: u32 = 61;

/// Tasks of the surplus among which the reserve looks for quick ones in one go.
const SIFTED: usize = 256;

/// Whose turn it is among the tasks of one runner.
pub(super) struct Turns {
    /// Tasks polled directly one after the other.
    streak: u32,
    /// Streaks of a single task, always the same, that came one after the other in this round.
    singles: u32,
    /// What its waker points to.
    parent: usize,
    /// When it was seen last whether it gathers.
    since: Option<Instant>,
    /// Tasks of the surplus before it gets its turn.
    waits: u32,
    /// Tasks taken from the ring or the injector.
    surplus: u32,
    /// It was invited to share the surplus.
    trial: Option<Trial>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { streak: 0, singles: 0, parent: 0, since: None, waits: 0, surplus: 0, trial: None }
    }

    /// The task to poll next: directly, as long as there is one and it is not the others' turn; else surplus.
    #[inline]
    pub(super) fn next(&mut self, state: &State, runner: &Runner, is_hosted: bool) -> Option<Runnable> {
        if self.waits > 0 && !runner.ring.is_empty() {
            self.waits -= 1;
        } else {
            if self.streak < STREAK {
                if let task @ Some(_) = direct(runner) {
                    self.streak += 1;
                    return task;
                }
            }
            self.streak_ends(runner);
        }
        // Where the streak was over, or waits, perhaps nobody else wants the turn.
        self.next_surplus(state, runner, is_hosted).or_else(|| direct(runner))
    }

    #[inline]
    pub(super) fn round_begins(&mut self) {
        (self.singles, self.waits, self.since) = (0, 0, None);
    }

    /// Who still waits gets its turn: what an event wakes next wants the slot.
    #[inline]
    pub(super) fn round_ends(&self, runner: &Runner) {
        if self.waits > 0 {
            direct(runner).into_iter().for_each(|task| runner.run(task));
        }
    }

    #[inline]
    fn streak_ends(&mut self, runner: &Runner) {
        let is_single = mem::take(&mut self.streak) == 1;
        self.waits = 0;
        if !is_single {
            self.singles = 0;
            return;
        }
        // The task that was polled last is the one of this streak.
        let parent = mem::replace(&mut self.parent, runner.task());
        self.singles = if self.parent == parent { self.singles + 1 } else { 1 };
        if self.singles == SINGLES {
            self.gathers(runner);
        }
    }

    /// The same task again and again: if more of its children wait, and those since the last look were quick, it gathers.
    #[cold]
    fn gathers(&mut self, runner: &Runner) {
        self.singles = 0;
        if runner.ring.len() <= GATHERED as usize {
            return;
        }
        let now = Instant::now();
        if self.since.replace(now).is_some_and(|since| now - since < ROUND) {
            (self.singles, self.waits) = (SINGLES - 1, GATHERED);
        }
    }

    #[inline]
    fn next_surplus(&mut self, state: &State, runner: &Runner, is_hosted: bool) -> Option<Runnable> {
        if runner.is_reserve() {
            return own_surplus(state, runner);
        }
        if self.trial.is_some() {
            self.is_on_trial(state, runner);
        }
        if runner.ring.is_empty() && !state.has_surplus() {
            // Looking into other runners takes a lock: only where nothing else is left to do.
            let searches = runner.searches.take();
            if searches {
                self.searches(state, runner);
            }
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
        runner.counters.surplus.add(1);
        if runner.searches.take() {
            self.searches(state, runner);
            share_all(state, runner);
        } else if !runner.ring.is_empty() || state.has_surplus() {
            // More than the task that is polled now: one more runner may come.
            state.invite();
        }
        Some(task)
    }

    /// It was woken to look for tasks.
    #[cold]
    fn searches(&mut self, state: &State, runner: &Runner) {
        if let Some(mut trial) = state.gain.answers() {
            runner.rested.set(false);
            trial.begins();
            self.trial = Some(trial);
        }
    }

    /// It is on trial until it rests.
    #[cold]
    fn is_on_trial(&mut self, state: &State, runner: &Runner) {
        let Some(trial) = &mut self.trial else { return };
        let rested = runner.rested.is_set();
        if rested {
            trial.forgets();
        } else {
            trial.ends();
        }
        let verdict = trial.has_paid().or(rested.then_some(false));
        if let Some(has_paid) = verdict {
            self.trial = None;
            state.gain.learns(has_paid && state.has_company_of(runner));
        } else {
            trial.begins();
        }
    }
}

/// The task in the slot.
#[inline]
fn direct(runner: &Runner) -> Option<Runnable> {
    runner.slot.take().inspect(|_| runner.counters.direct.add(1))
}

/// What the reserve may take. If it was called to look for tasks while it still was like others, somebody else is to come; and
/// for those that did not fit into its ring, to which it does not come back.
#[cold]
fn own_surplus(state: &State, runner: &Runner) -> Option<Runnable> {
    let called = runner.searches.take();
    if called {
        sift(state, runner);
    }
    let task = runner.ring.pop().ok();
    if (called || task.is_none()) && state.has_surplus() {
        state.notify();
    }
    task.inspect(|_| runner.counters.surplus.add(1))
}

/// Polls what is quick among the surplus, as far as that is known; the rest goes to the back.
fn sift(state: &State, runner: &Runner) {
    let began = Instant::now();
    for _ in 0..state.injected().min(SIFTED) {
        let Some(task) = state.pop_injected() else { return };
        runner.sifts.set(true);
        runner.run(task);
        if runner.sifts.take() {
            state.took();
            runner.counters.surplus.add(1);
        }
        if began.elapsed() >= ROUND {
            return;
        }
    }
}

#[cold]
fn steal(state: &State, runner: &Runner) -> Option<Runnable> {
    let task = state.steal_for(runner)?;
    runner.counters.stolen.add(1);
    share_all(state, runner);
    Some(task)
}

/// Who was woken to look for tasks found one: more may be left wherever it could have looked.
#[cold]
fn share_all(state: &State, runner: &Runner) {
    if state.has_tasks_for(runner) {
        state.notify();
    }
}
