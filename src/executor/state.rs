//! What the tasks, runners and handles of one executor share.
//!
//! Every scheduled task is in exactly one place (LF7): the slot or ring of a runner, the injector, or running; or, while a runtime
//! ends, aside (see [`ends`](super::ends)).

use std::ops::Deref;
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_task::{Runnable, ScheduleInfo};
use concurrent_queue::{ConcurrentQueue, PushError};

use super::drops::Drops;
use super::oversight::Alarms;
use super::runner::Runner;
use super::sleeper::Sleeper;
use super::tasks::Tasks;
use crate::gain::Gain;
use crate::line::{Line, Order};
use crate::sync::{self, Counter, Flag, Mutex, MutexGuard, Tally};

/// What it costs that a task is polled by another thread than the one that it was to be polled by: it has to be fetched, and so
/// has its memory.
const TASK_MOVED: Duration = Duration::from_micros(1);

/// The shared part of an executor.
#[derive(Debug)]
pub(crate) struct State {
    /// Tasks that nobody could poll directly: woken on a thread that hosts no runner of this executor.
    pub(super) injector: ConcurrentQueue<Runnable>,
    runners: Mutex<Vec<Arc<Runner>>>,
    /// Runners and tickers that sleep.
    pub(super) idle: Line<Sleeper>,
    pub(super) tickers: Tally,
    /// What those brought that were invited.
    pub(super) gain: Gain,
    pub(super) tasks: Tasks,
    tracks_tasks: Flag,
    /// It is a runtime's: its tasks are `Send` and borrow nothing, so whoever has one may drop it, at any time.
    pub(super) of_runtime: bool,
    /// Tasks that are not to be cancelled with the others, because they wait for the report of the end.
    pub(super) aside: Mutex<Vec<Runnable>>,
    /// What is dropped at the end.
    pub(super) drops: Drops,
    /// Tasks taken from the injector, more or less: two takers at once may count as one.
    taken: Counter,
    /// Who is told when there is something to watch here.
    pub(crate) alarms: Alarms,
    /// It was shown to somebody because of strangers.
    is_overseen: Flag,
    pub(super) itself: Weak<State>,
}

/// A reference to an executor's state.
#[derive(Clone, Debug)]
pub(crate) enum StateRef {
    /// Of an executor that can be dropped.
    Shared(Arc<State>),
    /// Of one that cannot.
    Static(&'static State),
}

impl StateRef {
    /// The state of an executor that is dropped some day.
    pub(crate) fn shared() -> Self {
        StateRef::Shared(State::new(true, true))
    }

    /// The state of one that never is.
    pub(crate) fn forever() -> Self {
        let state = Arc::into_raw(State::new(false, true));
        // SAFETY: this count is never given back.
        StateRef::Static(unsafe { &*state })
    }
}

impl Deref for StateRef {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        match self {
            StateRef::Shared(state) => state,
            StateRef::Static(state) => state,
        }
    }
}

impl State {
    /// `tracks_tasks` says whether the executor can be dropped: then its tasks are cancelled. `of_runtime` says that they are
    /// `Send` and borrow nothing.
    pub(crate) fn new(tracks_tasks: bool, of_runtime: bool) -> Arc<Self> {
        Arc::new_cyclic(|itself| Self {
            injector: ConcurrentQueue::unbounded(),
            runners: Mutex::new(Vec::new()),
            idle: Line::new(Order::LastInFirstOut),
            tickers: Tally::new(),
            gain: Gain::new(TASK_MOVED),
            tasks: Tasks::new(),
            tracks_tasks: Flag::new(tracks_tasks),
            of_runtime,
            aside: Mutex::new(Vec::new()),
            drops: Drops::new(),
            taken: Counter::default(),
            alarms: Alarms::new(),
            is_overseen: Flag::new(false),
            itself: itself.clone(),
        })
    }

    /// An address that tells this executor from all others.
    #[inline]
    pub(super) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline]
    pub(super) fn tracks_tasks(&self) -> bool {
        self.tracks_tasks.is_set()
    }

    pub(super) fn stop_tracking(&self) {
        self.tracks_tasks.set(false);
    }

    /// Tasks in the injector.
    pub(super) fn injected(&self) -> usize {
        self.injector.len()
    }

    /// Unfinished tasks, of an executor that tracks them.
    pub(crate) fn unfinished(&self) -> Option<usize> {
        self.tracks_tasks().then(|| self.tasks.count())
    }

    /// A task was woken on a thread that hosts no runner of this executor.
    #[inline(never)]
    pub(super) fn schedule_elsewhere(&self, task: Runnable) {
        self.inject(task);
        let anybody = self.notify();
        // Where all are busy they may be stuck, and a stranger may not come.
        if self.alarms.any() && (!anybody || self.is_overseen()) {
            self.alarms.call();
        }
    }

    /// A task was woken on the thread that hosts this runner: it goes where it is polled soonest, which is the slot.
    #[inline]
    pub(super) fn give(&self, runner: &Runner, task: Runnable, info: ScheduleInfo) {
        if info.woken_while_running {
            self.give_last(runner, task);
        } else if let Err(second) = runner.slot.put(task) {
            self.give_second(runner, second);
        }
    }

    /// The slot is taken: somebody else may want this one.
    #[inline(never)]
    fn give_second(&self, runner: &Runner, task: Runnable) {
        self.push_to(runner, task);
        self.invite();
    }

    /// A task woke itself. It goes to the back of the ring, or two of them would starve the rest (D4).
    #[inline(never)]
    fn give_last(&self, runner: &Runner, task: Runnable) {
        if runner.is_reserve() {
            // It does not stop, so it is for those who take what is long.
            self.inject(task);
            self.notify();
            return;
        }
        // Its poll ends now and the runner looks into the ring next; somebody else is needed only if there is more in it.
        let alone = runner.ring.is_empty();
        self.push_to(runner, task);
        if !alone {
            self.invite();
        }
    }

    fn push_to(&self, runner: &Runner, task: Runnable) {
        if let Err(full) = runner.ring.push(task) {
            self.inject(full.into_inner());
        }
    }

    /// Puts a task where any runner finds it; or cancels it, where no runner ever comes again: that of a runtime, because no
    /// other injector is ever closed.
    pub(super) fn inject(&self, task: Runnable) {
        if let Err(PushError::Closed(task) | PushError::Full(task)) = self.injector.push(task) {
            debug_assert!(self.of_runtime, "this future may not be dropped here");
            drop(task);
        }
    }

    /// A runner joins. Whoever was alone until now may come to wait for this one.
    pub(super) fn join(&self) -> Arc<Runner> {
        let runner = Arc::new(Runner::new(self.address()));
        self.runners().push(runner.clone());
        if self.has_company() {
            self.alarms.call();
        }
        runner
    }

    /// What is here is others' now, and nothing more is put here. Only for who hosts the runner, or polls one that is not hosted.
    pub(super) fn leave(&self, runner: &Arc<Runner>) {
        runner.left.set(true);
        self.runners().retain(|other| !Arc::ptr_eq(other, runner));
        // What was here, and what it was called for, is somebody else's now.
        if self.empty(runner) | self.rise(runner) || self.has_surplus() {
            self.notify();
        }
        // There may be nobody left to watch over.
        self.alarms.call();
    }

    fn runners(&self) -> MutexGuard<'_, Vec<Arc<Runner>>> {
        sync::lock(&self.runners)
    }

    /// Whether it has more than one runner or ticker.
    pub(crate) fn has_company(&self) -> bool {
        self.runners().len() + self.tickers.get() > 1
    }

    /// Whether it has a runner or ticker whose thread may sleep elsewhere than in our own `block_on`.
    fn has_stranger(&self) -> bool {
        self.tickers.get() > 0 || self.runners().iter().any(|runner| !runner.sleeper.is_hosted())
    }

    /// A stranger has joined, or somebody who joins a stranger; or one is polled, and may block next.
    #[cold]
    pub(super) fn has_strangers(&self) {
        if !self.is_overseen() && self.has_company() && self.has_stranger() {
            // Two at once: they show it to the same one.
            if let Some(overseer) = crate::oversee(self.itself.clone()) {
                self.alarms.add(overseer);
                self.is_overseen.set(true);
            }
        }
        // A stranger that is alone has nobody to tell, and is polled often.
        if self.is_overseen() {
            self.alarms.call();
        }
    }

    /// Whether a deputy has been shown this executor because of strangers.
    #[inline]
    pub(super) fn is_overseen(&self) -> bool {
        self.is_overseen.is_set()
    }

    /// Calls `f` for each runner until it returns something.
    pub(super) fn find_in_runners<R>(&self, f: impl FnMut(&Arc<Runner>) -> Option<R>) -> Option<R> {
        self.runners().iter().find_map(f)
    }

    /// Whether one of the runners is the reserve.
    pub(crate) fn has_reserve(&self) -> bool {
        self.find_in_runners(|runner| runner.is_reserve().then_some(())).is_some()
    }

    /// Whether another runner is awake, too.
    pub(super) fn has_company_of(&self, runner: &Runner) -> bool {
        let is_awake = |other: &Arc<Runner>| !std::ptr::eq(&**other, runner) && !other.rests.is_set();
        self.find_in_runners(|other| is_awake(other).then_some(())).is_some()
    }

    /// Whether tasks wait that any runner could take.
    pub(crate) fn has_surplus(&self) -> bool {
        !self.injector.is_empty()
    }

    /// Whether there is anything that this runner would find if it looked.
    pub(super) fn has_tasks_for(&self, runner: &Runner) -> bool {
        // Its own ring counts, too.
        let stealable = |other: &Arc<Runner>| (!other.ring.is_empty()).then_some(());
        !runner.slot.is_empty() || !self.injector.is_empty() || self.find_in_runners(stealable).is_some()
    }

    /// A task from the injector. Whoever polls it says so: see [`took`](Self::took).
    pub(super) fn pop_injected(&self) -> Option<Runnable> {
        self.injector.pop().ok()
    }

    /// A task of the injector has found somebody who polls it: what waits there moves.
    pub(super) fn took(&self) {
        self.taken.add(1);
    }

    /// A task from the injector, and some more for the runner's ring.
    pub(super) fn take_injected(&self, runner: &Runner) -> Option<Runnable> {
        let task = self.pop_injected()?;
        self.took();
        // Half of what is there, so that several runners share it.
        let room = runner.ring.capacity().unwrap_or(0).saturating_sub(runner.ring.len());
        self.move_some(&self.injector, runner, (self.injector.len() / 2).min(room / 2));
        Some(task)
    }

    /// A task from the ring of another runner.
    pub(super) fn steal_for(&self, runner: &Runner) -> Option<Runnable> {
        // The list is not locked while tasks are moved: one that finds no place may be dropped.
        let laden = |other: &Arc<Runner>| {
            (!std::ptr::eq(&**other, runner) && !other.ring.is_empty()).then(|| other.clone())
        };
        while let Some(other) = self.find_in_runners(laden) {
            if let Ok(stolen) = other.ring.pop() {
                self.move_some(&other.ring, runner, other.ring.len() / 2);
                return Some(stolen);
            }
        }
        None
    }

    fn move_some(&self, from: &ConcurrentQueue<Runnable>, to: &Runner, count: usize) {
        for _ in 0..count {
            let Ok(task) = from.pop() else { break };
            if let Err(full) = to.ring.push(task) {
                self.inject(full.into_inner());
                break;
            }
        }
    }

    /// Any scheduled task, wherever it sits: for callers that run one task at a time (L12).
    pub(crate) fn any_task(&self) -> Option<Runnable> {
        let queued = self.pop_injected();
        if queued.is_some() {
            self.took();
        }
        queued
            .or_else(|| self.find_in_runners(|runner| runner.ring.pop().ok()))
            .or_else(|| self.find_in_runners(|runner| runner.slot.take()))
    }

    /// Whether no task is left, and nobody was notified of one and did not come.
    #[cfg(all(test, paceline_shuttle))]
    pub(crate) fn is_at_rest(&self) -> bool {
        let holds = |runner: &Arc<Runner>| runner.has_tasks().then_some(());
        !self.has_surplus()
            && self.find_in_runners(holds).is_none()
            && self.unfinished().unwrap_or(0) == 0
            && self.idle.len() == self.runners().len() + self.tickers.get()
    }

    /// The task that came last to where any runner finds it; then any other one. Goes through all of them: for who has no other
    /// choice.
    pub(crate) fn newest_task(&self) -> Option<Runnable> {
        let mut injected: Vec<_> = self.injector.try_iter().collect();
        let newest = injected.pop();
        self.taken.add(u64::from(newest.is_some()));
        injected.into_iter().for_each(|task| self.inject(task));
        newest.or_else(|| self.any_task())
    }

    /// Tasks taken from the injector so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken.get()
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
