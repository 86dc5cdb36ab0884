//! What the tasks, runners and handles of one executor share.
//!
//! Every scheduled task is in exactly one place (LF7): the slot or ring of a runner, the injector, or running.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use async_task::{Runnable, ScheduleInfo};
use concurrent_queue::ConcurrentQueue;

use super::hosting;
use super::runner::Runner;
use super::sleepers::Sleepers;
use super::tasks::Tasks;
use crate::sync::{self, AtomicBool, Instant, RwLock};

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
    /// Somebody runs its tasks whom no deputy helps, or did: they come only if they are told, and at once.
    has_strangers: AtomicBool,
    unclaimed: Unclaimed,
}

/// Who is told that a task came and all runners were busy: they may be stuck.
#[derive(Default)]
struct Unclaimed(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Unclaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unclaimed").field(&self.0.get().is_some()).finish()
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
        StateRef::Shared(Arc::new(State::new(true)))
    }

    /// The state of one that never is.
    pub(crate) fn forever() -> Self {
        StateRef::Static(Box::leak(Box::new(State::new(false))))
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
    /// `tracks_tasks` says whether the executor can be dropped: then its tasks are cancelled.
    pub(crate) fn new(tracks_tasks: bool) -> Self {
        Self {
            injector: ConcurrentQueue::unbounded(),
            runners: RwLock::new(Vec::new()),
            sleepers: Sleepers::new(),
            tasks: Tasks::new(),
            tracks_tasks: AtomicBool::new(tracks_tasks),
            has_strangers: AtomicBool::new(false),
            unclaimed: Unclaimed::default(),
        }
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
    /// to the back of the ring, or two of them would starve the rest (D4). Everything else is surplus, and so is
    /// everything where strangers help: one of them may be what this thread is about to block for.
    #[inline]
    pub(super) fn schedule(&self, task: Runnable, info: ScheduleInfo) {
        let mut task = Some(task);
        let place = |runner: &Runner| self.place(runner, task.take().expect("placed once"), info);
        let surplus =
            !self.has_strangers.load(Relaxed) && hosting::with_runner_of(self, place).unwrap_or(false);
        if let Some(task) = task {
            self.inject(task);
            if !self.sleepers.notify() {
                self.tell_of_unclaimed();
            }
        } else if surplus {
            self.sleepers.invite();
        }
    }

    /// Somebody runs tasks, or is about to, who is in no `block_on` of ours, or ticks.
    #[inline]
    pub(super) fn takes_strangers(&self) {
        if !self.has_strangers.load(Relaxed) {
            self.take_stranger();
        }
    }

    /// Once for each executor. It stays that way, because tickers come and go with each task.
    #[cold]
    fn take_stranger(&self) {
        self.has_strangers.store(true, Relaxed);
        let runners = self.runners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for runner in runners {
            runner.hand_over();
        }
    }

    /// Has `hook` called when a task comes from outside and no runner is idle.
    pub(crate) fn on_unclaimed(&self, hook: impl Fn() + Send + Sync + 'static) {
        let _ = self.unclaimed.0.set(Box::new(hook));
    }

    #[cold]
    fn tell_of_unclaimed(&self) {
        if let Some(hook) = self.unclaimed.0.get() {
            hook();
        }
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

    /// Puts a task where any runner finds it.
    pub(super) fn inject(&self, task: Runnable) {
        let pushed = self.injector.push(task);
        debug_assert!(pushed.is_ok(), "the injector is unbounded and never closed");
    }

    pub(super) fn join(&self, runner: &Arc<Runner>) {
        self.sleepers.join(runner.sleeper.clone());
        self.runners.write().unwrap_or_else(PoisonError::into_inner).push(runner.clone());
    }

    pub(super) fn leave(&self, runner: &Arc<Runner>) {
        runner.close();
        self.runners
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|other| !Arc::ptr_eq(other, runner));
        self.sleepers.leave(&runner.sleeper);
        self.sleepers.notify();
    }

    /// Calls `f` for each runner until it returns something.
    fn find_in_runners<R>(&self, f: impl FnMut(&Arc<Runner>) -> Option<R>) -> Option<R> {
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
        // Half of what is there, so that several runners share it.
        let room = runner.ring.capacity().unwrap_or(0).saturating_sub(runner.ring.len());
        self.move_some(&self.injector, runner, (self.injector.len() / 2).min(room / 2));
        Some(task)
    }

    /// A task from the ring of another runner.
    pub(super) fn steal_for(&self, runner: &Runner) -> Option<Runnable> {
        self.find_in_runners(|other| {
            if std::ptr::eq(&**other, runner) {
                return None;
            }
            let stolen = other.ring.pop().ok();
            if stolen.is_some() {
                self.move_some(&other.ring, runner, other.ring.len() / 2);
            }
            stolen
        })
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
    pub(super) fn any_task(&self) -> Option<Runnable> {
        let queued = self.injector.pop().ok();
        queued
            .or_else(|| self.find_in_runners(|runner| runner.ring.pop().ok()))
            .or_else(|| self.find_in_runners(|runner| runner.slot.take()))
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
    /// this waits the few instructions until it is here.
    pub(crate) fn cancel_to_the_last(&self) {
        self.cancel_all();
        let start = Instant::now();
        while self.unfinished().is_some_and(|left| left > 0) && start.elapsed() < STRAGGLERS {
            match self.any_task() {
                Some(task) => drop(task),
                None => sync::thread::yield_now(),
            }
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
