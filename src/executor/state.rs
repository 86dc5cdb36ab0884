//! [`State`]: the shared state of an executor's tasks, runners and handles.
//!
//! Every scheduled task is in exactly one place (LF7): in the slot or ring of a runner, in one of the queues
//! that runners share, or running. `pool/README.md` says which runner takes what, and how long a task may wait.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;
use std::ptr;
use std::sync::{Arc, OnceLock, Weak};

use async_task::Runnable;
use concurrent_queue::{ConcurrentQueue, PushError};

use super::runner::{Left, Runner};
use super::sleeper::Sleeper;
use super::tasks::Tasks;
use crate::insight::Panics;
use crate::line::{Line, WakeOrder};
use crate::simulated::{self, Injector};
use crate::sync::{self, AtomicUsize, Counter, Flag, Mutex, MutexGuard, Ordering};
use crate::waking;

/// The part of a runtime that is called when a task becomes ready and no runner sleeps.
pub(crate) trait Notices: fmt::Debug + Send + Sync {
    fn look_soon(&self);
}

/// The shared part of an executor.
#[derive(Debug)]
pub(crate) struct State {
    /// Tasks that any runner may take: woken on a thread that hosts no runner of this executor, or moved
    /// here.
    pub(super) injector: Injector,
    /// Tasks that a standby has found in the injector and passed over, because they were never polled: to
    /// [takers](Runner::is_standby), the front of the injector.
    passed: ConcurrentQueue<Runnable>,
    /// Tasks that are known to compute, for takers only. Such a task is polled from here, and comes back to
    /// the end.
    slow: ConcurrentQueue<Runnable>,
    /// Number of tasks in these two queues, and of those that are on their way there: a task that is in a queue
    /// is counted.
    left: AtomicUsize,
    runners: Mutex<Vec<Arc<Runner>>>,
    /// Runners and tickers that sleep.
    pub(crate) idle: Line<Sleeper>,
    /// Of the runtime to which the executor belongs. Weak: the waker of a task may outlive the runtime, and
    /// keeps none of its descriptors.
    pub(crate) alarm: OnceLock<Weak<dyn Notices>>,
    pub(crate) tasks: Tasks,
    pub(super) tracks_tasks: Flag,
    /// Whether the executor belongs to a runtime: then its tasks are `Send` and borrow nothing, so any
    /// thread may drop them at any time.
    pub(super) of_runtime: bool,
    /// Whether the executor belongs to a current-thread runtime: then its tasks are polled in the order in
    /// which they became ready.
    pub(super) keeps_order: bool,
    /// Whether the executor is that of the default instance, whose state is never freed.
    lives_forever: bool,
    pub(crate) panics: Panics,
    /// Number of tasks taken from the injector, and from the two queues for takers: the deputy sees whether
    /// these move. Approximate: two threads that count at once may count as one.
    taken: Counter,
    taken_left: Counter,
    pub(super) itself: Weak<State>,
}

/// A reference to an executor's state. It is counted, unless the state is that of the default instance. One
/// type for both, because each type that a task may hold doubles the code that a `spawn` compiles to.
#[derive(Debug)]
pub(crate) struct StateRef(ManuallyDrop<Arc<State>>);

impl StateRef {
    /// Creates the state of a runtime's executor.
    pub(crate) fn shared() -> Self {
        State::new(true, true).into()
    }

    /// Creates the state of a current-thread runtime's executor, which polls tasks in the order in which they
    /// became ready.
    pub(crate) fn in_order() -> Self {
        State::with(true, true, true, false).into()
    }

    /// Creates the state of the default instance, which is never dropped but may be drained.
    pub(crate) fn forever() -> Self {
        State::with(true, true, false, true).into()
    }
}

impl From<Arc<State>> for StateRef {
    fn from(state: Arc<State>) -> Self {
        Self(ManuallyDrop::new(state))
    }
}

impl Clone for StateRef {
    #[inline]
    fn clone(&self) -> Self {
        if !self.lives_forever {
            return Self(self.0.clone());
        }
        // SAFETY: the state is never freed: no `StateRef` of it gives its reference back.
        Self(unsafe { ptr::read(&self.0) })
    }
}

impl Drop for StateRef {
    #[inline]
    fn drop(&mut self) {
        if !self.lives_forever {
            // SAFETY: the reference is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

impl Deref for StateRef {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.0
    }
}

impl State {
    /// Creates the state of an executor. `tracks_tasks`: the executor counts and lists its tasks, so that
    /// they can be cancelled. `of_runtime`: its tasks are `Send` and borrow nothing.
    pub(crate) fn new(tracks_tasks: bool, of_runtime: bool) -> Arc<Self> {
        Self::with(tracks_tasks, of_runtime, false, false)
    }

    /// Creates the state as [`new`](Self::new) does. `keeps_order`: all tasks are queued in the injector, and
    /// polled in that order. That is so for each executor that a program makes inside of a simulation, too.
    /// `lives_forever`: the tasks' references to the state are not counted.
    fn with(tracks_tasks: bool, of_runtime: bool, keeps_order: bool, lives_forever: bool) -> Arc<Self> {
        let is_simulated = simulated::is_running() && (keeps_order || !of_runtime);
        Arc::new_cyclic(|itself| Self {
            injector: simulated::injector(is_simulated),
            passed: ConcurrentQueue::unbounded(),
            slow: ConcurrentQueue::unbounded(),
            left: AtomicUsize::new(0),
            runners: Mutex::new(Vec::new()),
            idle: Line::new(WakeOrder::LastInFirstOut),
            alarm: OnceLock::new(),
            tasks: Tasks::new(),
            tracks_tasks: Flag::new(tracks_tasks),
            of_runtime,
            keeps_order: keeps_order || is_simulated,
            lives_forever,
            panics: Panics::default(),
            taken: Counter::default(),
            taken_left: Counter::default(),
            itself: itself.clone(),
        })
    }

    /// Counts a panic of a task, and tells the program of it: see [`Panics::note`]. For an executor
    /// that a program runs itself no line is printed, because no metrics show its count.
    pub(crate) fn note_panic(&self, spawned_at: &'static Location<'static>) {
        self.panics.note(spawned_at, self.of_runtime);
    }

    /// Returns an address that identifies this executor.
    #[inline]
    pub(super) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline]
    pub(super) fn tracks_tasks(&self) -> bool {
        self.tracks_tasks.is_set()
    }

    /// Returns the number of tasks in the queues that runners share.
    pub(super) fn queued(&self) -> usize {
        self.injector.len() + self.passed.len() + self.slow.len()
    }

    /// Returns the number of tasks spawned so far, of tasks in the queues that runners share, and of tasks
    /// taken from the injector.
    pub(crate) fn traffic(&self) -> (u64, usize, u64) {
        let (finished, unfinished) = self.tasks.census();
        (finished as u64 + unfinished as u64, self.queued(), self.taken.get())
    }

    /// Returns the number of unfinished tasks; `None` if the executor does not track them.
    pub(crate) fn unfinished(&self) -> Option<usize> {
        self.tracks_tasks().then(|| self.tasks.count())
    }

    /// Queues a task that was woken on a thread that hosts no runner of this executor: in the injector.
    #[inline(never)]
    pub(super) fn schedule_elsewhere(&self, task: Runnable) {
        self.inject(task);
        self.call_for_tasks();
    }

    /// Queues a task for takers, which `runner` leaves to them. A taker calls another one only if that is
    /// worth it, because it takes from these queues itself.
    #[cold]
    fn leave_to_takers(&self, runner: &Runner, task: Runnable, left: Left) {
        let queue = if left == Left::Slow { &self.slow } else { &self.passed };
        // ORDER: Relaxed, here and where it is read: the fences of `idle` make it visible, as they do the task.
        self.left.fetch_add(1, Ordering::Relaxed);
        let pushed = queue.push(task);
        if pushed.is_err() {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        self.complete(pushed);
        if runner.is_standby() { self.call_for_tasks() } else { self.invite(|| self.slow.len()) }
    }

    /// Wakes a sleeper for tasks that have become visible. If none sleeps, a runner takes them before it
    /// sleeps; all of them may be stuck, so the runtime's deputy is called.
    fn call_for_tasks(&self) {
        let is_called = self.notify();
        let alarm = self.alarm.get().filter(|_| !is_called);
        if let Some(alarm) = alarm.and_then(Weak::upgrade) {
            alarm.look_soon();
        }
    }

    /// Queues a task that was woken on the thread that hosts this runner: into the slot, where it is polled
    /// soonest, or into the ring if the slot is taken. A task that woke itself goes to the back, and so does
    /// every task if the runner keeps the order: see [`give_last`](Self::give_last).
    #[inline]
    pub(super) fn give(&self, runner: &Runner, task: Runnable, wakes_itself: bool) {
        if wakes_itself || runner.keeps_order {
            self.give_last(runner, task);
        } else if let Err(second) = runner.slot.put(task) {
            // At least two tasks wait now.
            self.push_to(runner, second, 1);
        }
    }

    /// Queues a task at the back of the ring, and wakes a sleeper if that is worth it. For a task that woke
    /// itself, because in the slot two such tasks would starve the others. A task that the runner leaves to
    /// takers goes to their queues. If the runner keeps the order, each task goes to the back of the injector,
    /// and no sleeper is woken.
    #[inline(never)]
    fn give_last(&self, runner: &Runner, task: Runnable) {
        if runner.keeps_order {
            // The runner takes it next. If it does not, the deputy wakes another runner, if there is one.
            self.inject(task);
        } else if let Some(left) = runner.leaves_task() {
            self.leave_to_takers(runner, task, left);
        } else {
            self.push_to(runner, task, 0);
        }
    }

    /// Pushes a task into the runner's ring, or into the injector if the ring is full. Wakes a sleeper for
    /// the tasks there, and those `in_slot`, if that is worth it.
    #[inline(never)]
    fn push_to(&self, runner: &Runner, task: Runnable, in_slot: usize) {
        if let Err(full) = runner.ring.push(task) {
            self.inject(full.into_inner());
        }
        self.invite(|| in_slot + runner.ring.len());
    }

    /// Puts a task into the injector, where any runner finds it, and wakes none. If the injector is closed,
    /// no runner will ever come: then the task is dropped, on another thread, because wakers are called under
    /// foreign locks. Only the injectors of runtimes are ever closed, and this call has begun before that, so
    /// there are few such threads. If none can be started, the task is dropped here.
    pub(super) fn inject(&self, task: Runnable) {
        self.complete(self.injector.push(task));
    }

    /// Completes a push into a queue that runners share, as [`inject`](Self::inject) says.
    fn complete(&self, pushed: Result<(), PushError<Runnable>>) {
        if let Err(PushError::Closed(task) | PushError::Full(task)) = pushed {
            debug_assert!(self.of_runtime, "this future may not be dropped here");
            let _ = sync::start_errand(|| waking::call(|| drop(task)));
        }
    }

    /// Adds a new runner, and returns it.
    pub(super) fn join(&self) -> Arc<Runner> {
        let runner = Arc::new(Runner::new(self.address(), self.keeps_order));
        self.runners().push(runner.clone());
        runner
    }

    /// Removes a runner: its tasks go to the injector, and no more tasks are put into this one. Wakes
    /// another runner if tasks wait in the queues then, or if this one was called. Only for the thread
    /// that hosts the runner, or that polls it if it is not hosted.
    pub(super) fn leave(&self, runner: &Arc<Runner>) {
        runner.orders.set_left();
        self.runners().retain(|other| !Arc::ptr_eq(other, runner));
        // Another runner has to take the tasks that were here, and those for which this one was called.
        if self.inject_all(runner) | self.leave_line(runner) || self.has_queued() {
            self.notify();
        }
    }

    fn runners(&self) -> MutexGuard<'_, Vec<Arc<Runner>>> {
        sync::lock(&self.runners)
    }

    /// Calls `f` for each runner until it returns something, and returns that. The list is locked meanwhile,
    /// so `f` must not run foreign code (LF3).
    pub(crate) fn find_in_runners<R>(&self, f: impl FnMut(&Arc<Runner>) -> Option<R>) -> Option<R> {
        self.runners().iter().find_map(f)
    }

    pub(crate) fn has_injected(&self) -> bool {
        !self.injector.is_empty()
    }

    /// Returns whether tasks wait in the queues for takers.
    #[inline]
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    /// Returns whether tasks wait in the queues that runners share.
    pub(crate) fn has_queued(&self) -> bool {
        self.has_injected() || self.has_left()
    }

    /// Returns whether this runner would find a task if it looked for one: in its own slot and ring, in the
    /// injector or, unless it is a standby, in the queues for takers and in other rings.
    pub(super) fn has_tasks_for(&self, runner: &Runner) -> bool {
        let stealable = |other: &Arc<Runner>| (!other.ring.is_empty()).then_some(());
        let is_left_to_it = || self.has_left() || self.find_in_runners(stealable).is_some();
        runner.has_tasks() || self.has_injected() || !runner.is_standby() && is_left_to_it()
    }

    /// Takes the oldest task of the injector, and counts it.
    pub(super) fn pop_injected(&self) -> Option<Runnable> {
        self.injector.pop().ok().inspect(|_| self.taken.add(1))
    }

    /// Takes the oldest task that a standby has passed over, and counts it. Not for a standby.
    pub(super) fn pop_passed(&self) -> Option<Runnable> {
        self.pop_left(&self.passed)
    }

    /// Takes the oldest task of the slow queue, and counts it. Not for a standby.
    pub(super) fn pop_slow(&self) -> Option<Runnable> {
        self.pop_left(&self.slow)
    }

    fn pop_left(&self, queue: &ConcurrentQueue<Runnable>) -> Option<Runnable> {
        let task = queue.pop().ok()?;
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.taken_left.add(1);
        Some(task)
    }

    /// Closes the queues that runners share: what is pushed there after that is dropped.
    pub(super) fn close(&self) {
        self.injector.close();
        self.passed.close();
        self.slow.close();
    }

    /// Steals a task from the ring of another runner, and moves up to half of the others into this runner's
    /// ring. Returns `None` if all other rings are empty.
    pub(super) fn steal_for(&self, runner: &Runner) -> Option<Runnable> {
        // The list is not locked while tasks are moved: a task that finds no place may be dropped (LF3).
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

    /// Moves up to `count` tasks into the ring of `to`, as far as they fit. A task that does not fit goes to
    /// the injector.
    fn move_some(&self, from: &ConcurrentQueue<Runnable>, to: &Runner, count: usize) {
        for _ in 0..count {
            let Ok(task) = from.pop() else { break };
            if let Err(full) = to.ring.push(task) {
                self.inject(full.into_inner());
                break;
            }
        }
    }

    /// Takes any scheduled task, from the queues that runners share first, then from the ring and the slot of
    /// any runner: for callers that run one task at a time. Returns `None` if no task waits.
    pub(crate) fn any_task(&self) -> Option<Runnable> {
        let has_left = self.has_left();
        let passed = if has_left { self.pop_passed() } else { None };
        passed
            .or_else(|| self.pop_injected())
            .or_else(|| if has_left { self.pop_slow() } else { None })
            .or_else(|| self.find_in_runners(|runner| runner.ring.pop().ok()))
            .or_else(|| self.find_in_runners(|runner| runner.slot.take()))
    }

    /// Returns the number of tasks taken so far from the injector, and from the queues for takers.
    pub(super) fn taken(&self) -> [u64; 2] {
        [self.taken.get(), self.taken_left.get()]
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
