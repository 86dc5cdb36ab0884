//! What the tasks, runners and handles of one executor share.
//!
//! Every scheduled task is in exactly one place (LF7): the slot or ring of a runner, the injector, or running.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use async_task::{Runnable, ScheduleInfo};
use concurrent_queue::{ConcurrentQueue, PushError};

use super::hosting;
use super::runner::Runner;
use super::sleepers::{Sleeper, Sleepers};
use super::tasks::Tasks;
use crate::sync::{self, AtomicBool, Counter, Instant, RwLock};

/// How long the end of an executor waits for tasks that other threads are just waking. They take some instructions; but
/// such a thread may be off its processor, and the end must come.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// The shared part of an executor.
#[derive(Debug)]
pub(crate) struct State {
    /// Tasks that nobody could poll directly: woken on a thread that hosts no runner of this executor.
    injector: ConcurrentQueue<Runnable>,
    runners: RwLock<Vec<Arc<Runner>>>,
    pub(super) sleepers: Sleepers,
    pub(super) tasks: Tasks,
    tracks_tasks: AtomicBool,
    /// It is a runtime's: its tasks are `Send` and borrow nothing, so whoever has one may drop it, at any time.
    of_runtime: bool,
    /// Tasks taken from the injector, more or less: two takers at once may count as one.
    taken: Counter,
    unclaimed: Hook,
    /// Called when there is something to watch in an executor that only [strangers](super::oversight) run.
    pub(super) overseer: Hook,
    itself: Weak<State>,
}

/// Somebody who is told something, or nobody.
#[derive(Default)]
pub(super) struct Hook(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl Hook {
    pub(super) fn set(&self, hook: Box<dyn Fn() + Send + Sync>) {
        let _ = self.0.set(hook);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    #[inline]
    pub(super) fn call(&self) {
        if let Some(hook) = self.0.get() {
            hook();
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.get().is_some()).finish()
    }
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
            runners: RwLock::new(Vec::new()),
            sleepers: Sleepers::new(),
            tasks: Tasks::new(),
            tracks_tasks: AtomicBool::new(tracks_tasks),
            of_runtime,
            taken: Counter::default(),
            unclaimed: Hook::default(),
            overseer: Hook::default(),
            itself: itself.clone(),
        })
    }

    /// A reference that keeps nothing alive.
    pub(super) fn itself(&self) -> Weak<State> {
        self.itself.clone()
    }

    #[inline]
    pub(super) fn tracks_tasks(&self) -> bool {
        self.tracks_tasks.load(Relaxed)
    }

    pub(super) fn stop_tracking(&self) {
        self.tracks_tasks.store(false, Relaxed);
    }

    /// Tasks in the injector.
    pub(super) fn injected(&self) -> usize {
        self.injector.len()
    }

    /// Unfinished tasks, of an executor that tracks them.
    pub(crate) fn unfinished(&self) -> Option<usize> {
        self.tracks_tasks().then(|| self.tasks.count())
    }

    /// A task was woken: it goes where it will be polled soonest without waking anybody.
    ///
    /// On a thread that hosts a runner of this executor, that is the runner's slot. A task that woke itself goes
    /// to the back of the ring, or two of them would starve the rest (D4). Everything else is surplus.
    #[inline]
    pub(super) fn schedule(&self, task: Runnable, info: ScheduleInfo) {
        let mut task = Some(task);
        let place = |runner: &Runner| self.place(runner, task.take().expect("placed once"), info);
        let surplus = hosting::with_runner_of(self, place).unwrap_or(false);
        if let Some(task) = task {
            self.schedule_elsewhere(task);
        } else if surplus {
            self.sleepers.invite();
        }
    }

    /// A task was woken on a thread that hosts no runner of this executor.
    #[inline]
    pub(super) fn schedule_elsewhere(&self, task: Runnable) {
        self.inject(task);
        if !self.sleepers.notify() {
            self.unclaimed.call();
        }
        self.overseer.call();
    }

    /// Has `hook` called when a task comes from outside and no runner is idle: they may be stuck.
    pub(crate) fn on_unclaimed(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.unclaimed.set(Box::new(hook));
    }

    /// True if the task is surplus that another runner may want.
    #[inline]
    fn place(&self, runner: &Runner, task: Runnable, info: ScheduleInfo) -> bool {
        if info.woken_while_running {
            // Its poll ends now and the runner looks into the ring next; somebody else is needed only if there is
            // more in it.
            let alone = runner.ring.is_empty();
            self.push_to(runner, task);
            return !alone;
        }
        match runner.slot.put(task) {
            Ok(()) => false,
            Err(second) => {
                self.push_to(runner, second);
                true
            }
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

    pub(super) fn join(&self, runner: &Arc<Runner>) {
        self.runners.write().unwrap_or_else(PoisonError::into_inner).push(runner.clone());
        self.join_sleepers(runner.sleeper.clone());
    }

    /// A runner or ticker joins. Whoever was alone until now is told: it may be what this one will wait for.
    pub(super) fn join_sleepers(&self, sleeper: sync::Arc<Sleeper>) {
        if self.sleepers.join(sleeper) == 2 {
            let runners = self.runners.read().unwrap_or_else(PoisonError::into_inner).clone();
            runners.iter().for_each(|runner| runner.has_company());
        }
    }

    /// Whether it has more than one runner or ticker.
    pub(super) fn has_company(&self) -> bool {
        self.sleepers.count() > 1
    }

    /// Whether it has a runner or ticker whose thread may sleep elsewhere than in our own `block_on`.
    pub(super) fn has_stranger(&self) -> bool {
        self.sleepers.any_stranger()
    }

    pub(super) fn leave(&self, runner: &Arc<Runner>) {
        runner.close();
        self.runners
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|other| !Arc::ptr_eq(other, runner));
        self.sleepers.leave(&runner.sleeper);
        self.sleepers.notify();
        // There may be nobody left to watch over.
        self.overseer.call();
    }

    /// Calls `f` for each runner until it returns something.
    pub(super) fn find_in_runners<R>(&self, f: impl FnMut(&Arc<Runner>) -> Option<R>) -> Option<R> {
        self.runners.read().unwrap_or_else(PoisonError::into_inner).iter().find_map(f)
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

    /// A task from the injector, and some more for the runner's ring.
    pub(super) fn take_injected(&self, runner: &Runner) -> Option<Runnable> {
        let task = self.injector.pop().ok()?;
        self.taken.add(1);
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
        let queued = self.injector.pop().ok();
        self.taken.add(u64::from(queued.is_some()));
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
            && self.sleepers.all_idle()
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

    /// Cancels all tasks that nobody polls right now.
    pub(crate) fn cancel_all(&self) {
        self.tasks.wake_all();
        while let Some(task) = self.any_task() {
            drop(task);
        }
    }

    /// The same where nobody polls any and none is spawned: the executor is being dropped. Then a task that is left is one
    /// that another thread has marked as scheduled and not put anywhere yet. It cannot be dropped there, because wakers
    /// are called under other people's locks (D1); and left alone it would keep itself and this state for ever (P8). So
    /// this waits the few instructions until it is here. What comes still later is cancelled where it comes from, if it is a
    /// runtime's; what may borrow from something that is gone by then, or belongs to one thread, is left alone.
    pub(crate) fn cancel_to_the_last(&self) {
        self.cancel_all();
        let start = Instant::now();
        while self.unfinished().is_some_and(|left| left > 0) && start.elapsed() < STRAGGLERS {
            match self.any_task() {
                Some(task) => drop(task),
                None => sync::thread::yield_now(),
            }
        }
        if !self.of_runtime {
            return;
        }
        self.injector.close();
        while let Some(task) = self.any_task() {
            drop(task);
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
