//! [`Host`]: what the executor keeps of the calling thread, in a thread-local of its own: the poll in
//! progress, and the innermost `block_on`, or visit. Tasks that the thread wakes go to the runners that this
//! `block_on` hosts.
//!
//! A `block_on` *hosts* each runner that it polls, until the runner is dropped. The runner is hosted between
//! two polls, too, because that is when the thread leads and calls wakers. A nested `block_on` is a host of
//! its own; the tasks in the runners below it are handed over to other threads. A [`HostGuard`] on the stack
//! keeps the values of the `block_on` below.
//!
//! A task may be left in a runner only if the runner's thread polls it soon, or the deputy notices that it
//! does not. This does not hold for a `run` that is polled with a foreign waker: it may be in the
//! `block_on` of another crate, on a thread that no deputy watches, or inside of a task of a runner below,
//! which it blocks. Such a runner is not hosted.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::Waker;

use async_task::Runnable;

use super::idle::BeforeSleep;
use super::runner::{Caught, Runner};
use super::state::{State, StateRef};
use crate::budget;
use crate::observed::unwrapped;
use crate::sync::{self, Mutex, MutexGuard, thread_local};
use crate::waking;

/// A runner, and the executor whose tasks it runs.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    pub(crate) state: StateRef,
    pub(crate) runner: Arc<Runner>,
}

/// The runners of one host. Only the host's own thread changes the list; the deputy reads it.
#[derive(Debug, Default)]
pub(crate) struct Runners(Mutex<Vec<Hosted>>);

impl Runners {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Hosted>> {
        sync::lock(&self.0)
    }

    /// Moves the tasks in these runners to the injectors, and wakes other runners for them, and for those that
    /// the runners have left to takers.
    pub(crate) fn hand_over(&self) {
        let hosted = self.lock().clone();
        for Hosted { state, runner } in &hosted {
            if state.inject_all(runner) | state.has_left() {
                state.notify();
            }
        }
    }
}

/// The services of the pool for a host.
pub(crate) trait Surroundings: Send + Sync {
    /// Returns the runners that are hosted here.
    fn runners(&self) -> &Runners;
    /// Has this thread watched from now on, because it hosts a runner: may start the thread that watches.
    fn start_watch_as_host(&self);
    /// Ends the hosting of `runner`. `last` says that no other runner is.
    fn end_hosting(&self, runner: &Runner, last: bool);
    /// Has another thread lead, because this thread is about to run a task that is known to block, or to
    /// compute for long.
    fn cover(&self, known: Caught);
}

/// Tasks that a runner polls in one go if no fetched event waits, or outside of this crate's `block_on`.
const BUDGET_ALONE: u32 = 128;
/// Tasks that a runner polls in one go if fetched events wait until this thread returns to the reactor.
const BUDGET_BETWEEN_EVENTS: u32 = 8;

/// The state of the calling thread. Each value belongs to the innermost `block_on` or visit.
#[derive(Clone)]
pub(crate) struct Host {
    /// The runner that is polled at the top of the stack, or null.
    running: Cell<*const Runner>,
    /// The hosted runner that was polled or hosted last; null if there is none.
    last: Cell<*const Runner>,
    /// Whether a hosted runner was found to have left.
    stale: Cell<bool>,
    /// The address that the waker of the `block_on`'s own future points to; null for a visit.
    root: Cell<*const ()>,
    /// Whether this thread has woken that future.
    pub(crate) woken: Cell<bool>,
    /// Whether tasks may be left here: the host is watched, and no foreign `block_on` may be on top of the
    /// poll in progress.
    keeps_tasks: Cell<bool>,
    /// Whether a deputy notices when this thread is stuck.
    watched: Cell<bool>,
    /// Whether fetched events wait until this thread returns to the reactor.
    pub(crate) events_wait: Cell<bool>,
    /// How many `block_on`s and visits the thread is in.
    depth: Cell<u32>,
    /// `None` outside of all `block_on`s, and for a visit, which hosts no runner.
    surroundings: Cell<Option<NonNull<dyn Surroundings>>>,
}

thread_local! {
    static HOST: Host = const { Host::new(ptr::null(), None, 0) };
}

/// Calls `f` with the state of the calling thread.
#[inline]
pub(crate) fn here<R>(f: impl FnOnce(&Host) -> R) -> R {
    HOST.with(f)
}

/// Queues a woken task where it is polled soonest. If this thread keeps tasks and has a runner of the
/// task's executor, that is the runner, usually its slot: see [`State::give`]. Otherwise it is the injector,
/// and a sleeper is woken: see [`State::schedule_elsewhere`].
#[inline]
pub(super) fn schedule(state: &State, task: Runnable, wakes_itself: bool) {
    here(|host| {
        if !host.keeps_tasks.get() {
            return state.schedule_elsewhere(task);
        }
        match host.running().filter(|runner| runner.is_of(state.address())) {
            Some(runner) => state.give(runner, task, wakes_itself),
            None => host.schedule_between_polls(state, task, wakes_itself),
        }
    });
}

/// Calls `f` with the runner that is polled at the top of this thread's stack.
#[inline]
pub(super) fn with_running<R>(f: impl FnOnce(Option<&Runner>) -> R) -> R {
    here(|host| f(host.running()))
}

/// A guard for a poll at the top of this thread's stack: of a runner, or of a task that runs without one. The
/// drop resumes the poll below it.
pub(super) struct PollGuard<'a>(&'a Host, *const Runner);

impl<'a> PollGuard<'a> {
    #[inline]
    pub(super) fn begin(host: &'a Host, runner: *const Runner) -> Self {
        Self(host, host.running.replace(runner))
    }
}

impl Drop for PollGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.running.set(self.1);
    }
}

/// Polls a task that the caller took from a queue. If this happens inside of a runner's poll, the task does
/// not count as a task of that runner. A panic ends here, as in [`Runner::run`].
pub(crate) fn run_beside(task: Runnable) {
    here(|host| {
        let _none = PollGuard::begin(host, ptr::null());
        budget::refill();
        waking::call(|| _ = task.run());
    });
}

/// Has another thread lead while this thread runs a slow task. `known` says what the task was caught in
/// before. Does nothing if the thread is in no `block_on`.
#[cold]
pub(super) fn cover(known: Caught) {
    here(|host| host.surroundings().into_iter().for_each(|surroundings| surroundings.cover(known)));
}

/// Returns whether `waker` is that of the innermost `block_on` of this thread.
pub(crate) fn is_awaited_on_top(waker: &Waker) -> bool {
    here(|host| host.is_root(waker))
}

/// Returns an address that identifies the calling thread while it exists, and how many `block_on`s and visits
/// it is in.
#[inline]
pub(crate) fn place() -> (usize, u32) {
    here(|host| (host.thread(), host.depth.get()))
}

/// Wakes the future of the innermost `block_on` of this thread, if its wakers point to `root`. Returns false
/// if `root` belongs to another `block_on`: its thread may sleep, and the caller has to wake it.
#[inline]
pub(crate) fn wake_root_on_top(root: *const ()) -> bool {
    here(|host| {
        let is_root = ptr::eq(host.root.get(), root);
        if is_root {
            host.woken.set(true);
        }
        is_root
    })
}

/// Makes this thread keep no tasks if a `run` or ticker is polled with a foreign waker: neither that of the
/// host nor that of the running task. Then a foreign `block_on` may be at the top of this thread's stack, and
/// may block it. So the tasks in the runners below are handed over to other threads, and tasks that are woken
/// here go to the injector until one of these runners is polled again.
pub(super) fn hand_over_under_stranger(waker: &Waker) {
    here(|host| {
        let is_of_task = host.running().is_some_and(|runner| runner.polls_with(waker));
        if !is_of_task && !host.polls_with(waker) && host.keeps_tasks.replace(false) {
            host.runners().into_iter().for_each(Runners::hand_over);
        }
    });
}

/// Removes a runner whose `run` is gone from its executor and from the host at this address; 0 if it has
/// none. If that is not the innermost host of this thread, the runner is only marked as left, and its host
/// removes it later.
pub(super) fn forget(at: usize, Hosted { state, runner }: &Hosted) {
    here(|host| match at {
        0 => state.leave(runner),
        _ if at == host.address() => host.forget(|other| Arc::ptr_eq(&other.runner, runner)),
        _ => runner.orders.set_left(),
    });
}

impl Host {
    /// Creates the state for a `block_on` that polls its own future with a waker that points to `root`. The
    /// future counts as woken. Without `surroundings`, no runner is hosted. No tasks are left here before
    /// [`set_watched`](Self::set_watched).
    const fn new(root: *const (), surroundings: Option<NonNull<dyn Surroundings>>, depth: u32) -> Self {
        Self {
            running: Cell::new(ptr::null()),
            last: Cell::new(ptr::null()),
            stale: Cell::new(false),
            root: Cell::new(root),
            woken: Cell::new(true),
            keeps_tasks: Cell::new(false),
            watched: Cell::new(false),
            events_wait: Cell::new(false),
            depth: Cell::new(depth),
            surroundings: Cell::new(surroundings),
        }
    }

    #[inline]
    fn set(&self, to: &Self) {
        self.running.set(to.running.get());
        self.last.set(to.last.get());
        self.stale.set(to.stale.get());
        self.root.set(to.root.get());
        self.woken.set(to.woken.get());
        self.keeps_tasks.set(to.keeps_tasks.get());
        self.watched.set(to.watched.get());
        self.events_wait.set(to.events_wait.get());
        self.depth.set(to.depth.get());
        self.surroundings.set(to.surroundings.get());
    }

    /// Returns an address that identifies the thread while it exists.
    pub(super) fn thread(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Returns the runner that is polled at the top of this thread's stack; `None` if none is, or if a
    /// `block_on` or visit began on top of its poll.
    #[inline]
    fn running(&self) -> Option<&Runner> {
        // SAFETY: `PollGuard` unlinks the runner before its `poll`, which keeps the runner alive, is left.
        unsafe { self.running.get().as_ref() }
    }

    fn surroundings(&self) -> Option<&dyn Surroundings> {
        // SAFETY: `HostGuard` borrows them, and unlinks them when it is dropped. The callers use the
        // reference within a call inside of the `block_on`.
        self.surroundings.get().map(|surroundings| unsafe { surroundings.as_ref() })
    }

    /// Returns the runners that are hosted here; `None` if there are none, without a look at their lock.
    #[inline]
    fn runners(&self) -> Option<&Runners> {
        if self.last.get().is_null() { None } else { Some(self.surroundings()?.runners()) }
    }

    /// Returns an address that identifies the `block_on` while it exists; 0 for a visit, and outside.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.root.get().addr()
    }

    /// Returns the first hosted runner that `is_wanted`. `is_wanted` runs under the lock.
    fn find(&self, is_wanted: impl Fn(&Runner) -> bool) -> Option<Arc<Runner>> {
        let hosted = self.runners()?.lock();
        hosted.iter().map(|hosted| &hosted.runner).find(|runner| is_wanted(runner)).cloned()
    }

    /// Returns whether a runner is hosted here.
    #[inline]
    pub(crate) fn is_host(&self) -> bool {
        self.runners().is_some()
    }

    /// Allows tasks to be left here, because from now on a deputy notices when this thread is stuck.
    pub(crate) fn set_watched(&self) {
        self.watched.set(true);
        self.keeps_tasks.set(true);
    }

    /// Returns how many tasks a runner may poll here in one go.
    #[inline]
    pub(super) fn budget(&self) -> u32 {
        if self.events_wait.get() { BUDGET_BETWEEN_EVENTS } else { BUDGET_ALONE }
    }

    /// Queues a task that is woken while no runner of its executor is being polled at the top of the stack:
    /// by an event, for example. The task goes to a hosted runner of its executor, whose `run` is woken, or
    /// into the injector if there is none.
    #[inline(never)]
    fn schedule_between_polls(&self, state: &State, task: Runnable, wakes_itself: bool) {
        let is_wanted = |runner: &Runner| runner.is_of(state.address()) && !runner.orders.has_left();
        // SAFETY: `runners` keeps a hosted runner alive until this thread removes it in `forget`, which
        // changes `last` before it calls a waker. Below, the runner is not used after a foreign waker was
        // called.
        if let Some(last) = unsafe { self.last.get().as_ref() }.filter(|last| is_wanted(last)) {
            self.wake(last);
            return state.give(last, task, wakes_itself);
        }
        match self.find(is_wanted) {
            Some(runner) => {
                self.wake(&runner);
                state.give(&runner, task, wakes_itself);
            }
            None => state.schedule_elsewhere(task),
        }
    }

    /// Makes this thread poll a runner of this host soon: wakes the `run`, by a mark if that is polled with
    /// the waker of the host's own future.
    #[inline]
    fn wake(&self, runner: &Runner) {
        if runner.is_root.is_set() {
            self.woken.set(true);
        } else {
            runner.sleeper.wake();
        }
    }

    fn is_root(&self, waker: &Waker) -> bool {
        // A waker made of an `Arc` carries the address of what is in it. A waker that does nothing may carry
        // null.
        let data = unwrapped(waker).data();
        !data.is_null() && ptr::eq(data, self.root.get())
    }

    /// Returns whether this host polls with `waker`: its own future, or the future inside one of its runners.
    fn polls_with(&self, waker: &Waker) -> bool {
        let data = unwrapped(waker).data();
        self.is_root(waker) || self.find(|runner| ptr::eq(data, ptr::from_ref(runner).cast())).is_some()
    }

    /// Records that a hosted runner is about to be polled: tasks that are woken between two polls go there.
    /// The thread keeps tasks again if it is watched.
    #[inline]
    pub(super) fn start_poll(&self, runner: &Arc<Runner>) {
        self.keeps_tasks.set(self.watched.get());
        self.last.set(Arc::as_ptr(runner));
    }

    /// Hosts `runner` from now on, if it is polled with the `waker` of this host or of another of its
    /// runners. Returns whether the runner is hosted; never in a visit.
    pub(super) fn adopt(&self, state: &StateRef, runner: &Arc<Runner>, waker: &Waker) -> bool {
        let Some(surroundings) = self.surroundings().filter(|_| self.polls_with(waker)) else {
            return false;
        };
        runner.is_root.set(self.is_root(waker));
        let mut runners = surroundings.runners().lock();
        if runners.iter().any(|known| Arc::ptr_eq(&known.runner, runner)) {
            return true;
        }
        runners.push(Hosted { state: state.clone(), runner: runner.clone() });
        drop(runners);
        self.last.set(Arc::as_ptr(runner));
        surroundings.start_watch_as_host();
        true
    }

    /// Removes the matching runners, also from their executors. The tasks in them go to the injector, and
    /// other runners are woken for them.
    #[cold]
    fn forget(&self, which: impl Fn(&Hosted) -> bool) {
        while let Some(mut runners) = self.runners().map(Runners::lock) {
            let Some(at) = runners.iter().position(&which) else { break };
            let gone = runners.remove(at);
            let left = runners.first().map_or(ptr::null(), |first| Arc::as_ptr(&first.runner));
            self.last.set(left);
            drop(runners);
            if let Some(surroundings) = self.surroundings() {
                surroundings.end_hosting(&gone.runner, left.is_null());
            }
            gone.state.leave(&gone.runner);
        }
    }

    /// Removes the runners that [`enter_lines`](Self::enter_lines) found to have left. Wakes other runners,
    /// so the caller must not lead (LF3).
    #[inline]
    pub(crate) fn forget_left(&self) {
        if self.stale.replace(false) {
            self.forget(|hosted| hosted.runner.orders.has_left());
        }
    }

    /// Puts the runners into the lines of their executors, because the thread is about to sleep. Returns
    /// false if the thread must not sleep, and then [`leave_lines`](Self::leave_lines) has to be called: one
    /// of them has tasks after all, and its `run` is woken; or one of them has left, and
    /// [`forget_left`](Self::forget_left) has to be called as well.
    pub(crate) fn enter_lines(&self) -> bool {
        let Some(runners) = self.runners() else { return true };
        let (hosted, mut left_tasks) = (runners.lock(), Vec::new());
        // `enter_line` runs no foreign code, so the lock may be held (LF3).
        let must_stay = |Hosted { state, runner }: &&Hosted| {
            if runner.orders.has_left() {
                // Not removed here: that wakes other runners, and this thread may lead (LF3).
                self.stale.set(true);
                return true;
            }
            let found = state.enter_line(runner);
            if found == BeforeSleep::LeavesTasks {
                left_tasks.push(state.clone());
            }
            found == BeforeSleep::HasTasks
        };
        let stays = hosted.iter().find(must_stay).map(|hosted| hosted.runner.clone());
        drop(hosted);
        left_tasks.iter().for_each(|state| state.notify_or_start_errand());
        let Some(stays) = stays else { return true };
        self.woken.set(true);
        if !self.stale.get() {
            self.wake(&stays);
        }
        false
    }

    /// Takes the runners out of the lines, because the thread is awake.
    pub(crate) fn leave_lines(&self) {
        if let Some(runners) = self.runners() {
            runners.lock().iter().for_each(|hosted| _ = hosted.state.leave_line(&hosted.runner));
        }
    }
}

/// A `block_on` or visit as the executor sees it. Keeps the thread's state of what is below, a `block_on`, a
/// visit or the poll of a runner, and puts it back when it is dropped.
pub(crate) struct HostGuard(Option<Host>);

impl HostGuard {
    /// Begins a `block_on`: see [`Host::new`]. The surroundings outlive the guard, and no poll is in progress
    /// in it yet.
    #[inline]
    pub(crate) fn enter(root: *const (), surroundings: Option<&(dyn Surroundings + 'static)>) -> Self {
        here(|host| {
            let depth = host.depth.get();
            let is_below = depth > 0 || host.running().is_some();
            let below = is_below.then(|| host.clone());
            host.set(&Host::new(root, surroundings.map(NonNull::from), depth + 1));
            Self(below)
        })
    }
}

impl Drop for HostGuard {
    /// Makes this thread keep no tasks, because its `block_on` is left, and removes all runners. Most are
    /// gone with the `block_on`'s future; the `run` of one may have moved elsewhere, and its runner must not
    /// get tasks from here any more.
    #[inline]
    fn drop(&mut self) {
        here(|host| {
            host.keeps_tasks.set(false);
            if host.is_host() {
                host.forget(|_| true);
            }
            match &self.0 {
                None => host.set(&Host::new(ptr::null(), None, 0)),
                Some(below) => host.set(below),
            }
        });
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
