//! [`Host`]: the executor's view of a `block_on`. Tasks that its thread wakes go to the runners that it
//! hosts.
//!
//! A `block_on` *hosts* each runner that it polls, until the runner is dropped. The runner is hosted
//! between two polls, too, because that is when the thread leads and calls wakers. A nested `block_on` is a
//! host of its own; the tasks in the runners below it are handed over to other threads.
//!
//! A task may be left in a runner only if the runner's thread polls it soon, or the deputy notices that it
//! does not. This does not hold for a runner that is polled with a foreign waker: it may run in the
//! `block_on` of another crate, on a thread that no deputy watches, or inside of a task of a runner below,
//! which it blocks. Such a runner is not hosted.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use async_task::Runnable;

use super::idle::Rest;
use super::runner::{Caught, Runner};
use super::state::{State, StateRef};
use crate::frame::{self, Here};
use crate::observed::unwrapped;
use crate::sync::{self, Mutex, MutexGuard};
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
}

/// The services of the pool for a host.
pub(crate) trait Surroundings: Send + Sync {
    /// Returns the runners that are hosted here.
    fn runners(&self) -> &Runners;
    /// Notes that a runner of `executor` is hosted from now on.
    fn note_hosted(&self, executor: &State);
    /// Notes that `runner` is not hosted any more. `last` says that no other runner is.
    fn note_forgotten(&self, runner: &Runner, last: bool);
    /// Has another thread lead, because this thread is about to run a task that is known to block, or to
    /// compute for long.
    fn cover(&self, known: Caught);
}

/// Tasks that a runner polls in one go if no fetched event waits, or outside of this crate's `block_on`.
pub(super) const BUDGET_ALONE: u32 = 128;
/// Tasks that a runner polls in one go if fetched events wait until this thread returns to the reactor.
const BUDGET_BETWEEN_EVENTS: u32 = 8;

/// The executor's part of a frame.
pub(crate) struct Host {
    surroundings: Option<Arc<dyn Surroundings>>,
    /// The address that the waker of the frame's own future points to.
    root: *const (),
    /// Whether this thread has woken that future.
    woken: Cell<bool>,
    /// The hosted runner that was polled last, or null.
    last: Cell<*const Runner>,
    /// Whether more than one runner is hosted.
    several: Cell<bool>,
    /// Whether a hosted runner was found to have left.
    stale: Cell<bool>,
    /// Whether a deputy notices when this thread is stuck.
    watched: Cell<bool>,
    /// Whether tasks may be left here: the host is watched, and no foreign `block_on` may be on top of the
    /// poll in progress.
    open: Cell<bool>,
    /// Whether fetched events wait until this thread returns to the reactor.
    events_wait: Cell<bool>,
}

/// Returns the topmost host of this thread; `None` if the thread is in no frame.
#[inline]
pub(super) fn top(here: &Here) -> Option<&Host> {
    // SAFETY: only the pool makes frames, and their part begins with a host. The callers use the reference
    // within a call inside of the frame, and code that enters another frame meanwhile leaves that frame
    // first.
    unsafe { here.part::<Host>() }
}

/// Queues a woken task where it is polled soonest. If the topmost host of this thread is open and has a
/// runner of the task's executor, that is the runner, usually its slot: see [`State::give`]. Otherwise it is
/// the injector, and a sleeper is woken: see [`State::schedule_elsewhere`].
#[inline]
pub(super) fn schedule(state: &State, task: Runnable, wakes_itself: bool) {
    frame::here(|here| {
        let Some(host) = top(here).filter(|host| host.open.get()) else {
            return state.schedule_elsewhere(task);
        };
        match running(here).filter(|runner| runner.takes(state.address())) {
            Some(runner) => state.give(runner, task, wakes_itself),
            None => host.schedule_between_polls(state, task, wakes_itself),
        }
    });
}

/// Returns the runner that is polled at the top of this thread's stack; `None` if none is, or if a frame was
/// entered on top of its poll.
#[inline]
fn running(here: &Here) -> Option<&Runner> {
    // SAFETY: `PollGuard` unlinks the runner before its `poll`, which keeps the runner alive, is left.
    unsafe { here.runner().cast::<Runner>().as_ref() }
}

/// Calls `f` with the runner that is polled at the top of this thread's stack.
#[inline]
pub(super) fn with_running<R>(f: impl FnOnce(Option<&Runner>) -> R) -> R {
    frame::here(|here| f(running(here)))
}

/// A guard for a poll at the top of this thread's stack: of a runner, or of a task that runs without one. The
/// drop resumes the poll below it.
pub(super) struct PollGuard<'a>(&'a Here, frame::Running);

impl<'a> PollGuard<'a> {
    #[inline]
    pub(super) fn begin(here: &'a Here, runner: *const Runner, budget: u32) -> Self {
        Self(here, here.begin(frame::Running::new(runner.cast(), budget)))
    }
}

impl Drop for PollGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.resume(self.1);
    }
}

/// Polls a task that the caller took from a queue. If this happens inside of a runner's poll, the task does
/// not count as a task of that runner. A panic ends here, as in [`Runner::run`].
pub(crate) fn run_beside(task: Runnable) {
    frame::here(|here| {
        let is_inside = !here.runner().is_null();
        let _none = is_inside.then(|| PollGuard::begin(here, ptr::null(), 0));
        waking::call(|| _ = task.run());
    });
}

/// Has another thread lead while this thread runs a slow task. `known` says what the task was caught in
/// before. Does nothing if the thread is in no frame, or if the topmost host has no pool.
#[cold]
pub(super) fn cover(known: Caught) {
    let surroundings = frame::here(|here| top(here)?.surroundings.clone());
    if let Some(surroundings) = surroundings {
        surroundings.cover(known);
    }
}

/// Returns whether `waker` is that of the topmost `block_on` of this thread.
pub(crate) fn is_awaited_on_top(waker: &Waker) -> bool {
    frame::here(|here| top(here).is_some_and(|host| host.is_root(waker)))
}

/// Wakes the future of the topmost `block_on` of this thread, if its wakers point to `root`. Returns false if
/// `root` belongs to another `block_on`: its thread may sleep, and the caller has to wake it.
#[inline]
pub(crate) fn wake_root_on_top(root: *const ()) -> bool {
    frame::here(|here| {
        let host = top(here).filter(|host| ptr::eq(host.root, root));
        host.map(|host| host.set_woken(true)).is_some()
    })
}

/// Closes the topmost host if a `run` or ticker is polled with a foreign waker: neither that of the host
/// nor that of the running task. Then a foreign `block_on` may be at the top of this thread's stack, and
/// may block it. So the tasks in the runners below are handed over to other threads, and tasks that are
/// woken here go to the injector until one of these runners is polled again.
pub(super) fn note_stranger(waker: &Waker) {
    frame::here(|here| {
        let is_of_task = running(here).is_some_and(|runner| runner.polls_with(waker));
        let host = top(here).filter(|host| !is_of_task && !host.polls_with(waker));
        if let Some(host) = host.filter(|host| host.open.replace(false)) {
            host.hand_over();
        }
    });
}

/// Removes a runner whose `run` is gone from its executor and from the host at this address; 0 if it has
/// none. If the host is not on this thread, the runner is only marked as left, and its host removes it later.
pub(super) fn forget(host: usize, hosted: &Hosted) {
    if host == 0 {
        return hosted.state.leave(&hosted.runner);
    }
    frame::here(|here| {
        // SAFETY: as in `top`.
        match unsafe { here.parts::<Host>() }.find(|other| other.address() == host) {
            Some(host) => host.forget(|known| Arc::ptr_eq(&known.runner, &hosted.runner)),
            None => hosted.runner.orders.set_left(),
        }
    });
}

impl Host {
    /// Creates a host that polls its own future with a waker that points to `root`. The future counts as
    /// woken. Without `surroundings`, the host hosts no runner. No tasks are left here before
    /// [`set_watched`](Self::set_watched).
    pub(crate) fn new(root: *const (), surroundings: Option<Arc<dyn Surroundings>>) -> Self {
        Self {
            surroundings,
            root,
            woken: Cell::new(true),
            last: Cell::new(ptr::null()),
            several: Cell::new(false),
            stale: Cell::new(false),
            watched: Cell::new(false),
            open: Cell::new(false),
            events_wait: Cell::new(false),
        }
    }

    /// Returns an address that identifies this host among all existing ones.
    pub(super) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Returns whether the host's own thread has woken the host's own future.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.get()
    }

    /// Sets what [`is_woken`](Self::is_woken) returns. Returns the previous value.
    #[inline]
    pub(crate) fn set_woken(&self, woken: bool) -> bool {
        self.woken.replace(woken)
    }

    /// Allows tasks to be left here, because from now on a deputy notices when this thread is stuck.
    pub(crate) fn set_watched(&self) {
        self.watched.set(true);
        self.open.set(true);
    }

    /// Sets whether fetched events wait until this thread returns to the reactor.
    #[inline]
    pub(crate) fn set_events_wait(&self, waiting: bool) {
        self.events_wait.set(waiting);
    }

    /// Returns whether fetched events wait until this thread returns to the reactor. Further calls return
    /// false until it has done so.
    #[inline]
    pub(super) fn take_events_wait(&self) -> bool {
        self.events_wait.take()
    }

    /// Returns how many tasks a runner may poll here in one go.
    #[inline]
    pub(super) fn budget(&self) -> u32 {
        if self.events_wait.get() { BUDGET_BETWEEN_EVENTS } else { BUDGET_ALONE }
    }

    fn runners(&self) -> Option<&Runners> {
        self.surroundings.as_ref().map(|surroundings| surroundings.runners())
    }

    /// Queues a task that is woken while no runner of its executor is being polled at the top of the stack:
    /// by an event, for example. The task goes to a hosted runner of its executor, whose `run` is woken, or
    /// into the injector if there is none.
    #[inline(never)]
    fn schedule_between_polls(&self, state: &State, task: Runnable, wakes_itself: bool) {
        // SAFETY: `runners` keeps a hosted runner alive until this thread removes it in `forget`, which
        // changes `last` before it calls a waker. Below, the runner is not used after a foreign waker was
        // called.
        let last = unsafe { self.last.get().as_ref() };
        let runner = match last.filter(|runner| runner.takes(state.address())) {
            Some(runner) if !runner.orders.has_left() => runner,
            _ if self.several.get() => return self.schedule_for_another(state, task, wakes_itself),
            _ => return state.schedule_elsewhere(task),
        };
        self.wake(runner);
        state.give(runner, task, wakes_itself);
    }

    /// Queues a task as [`schedule_between_polls`](Self::schedule_between_polls) does, if the runner that was
    /// polled last does not take the task: searches the list for one that does.
    #[cold]
    fn schedule_for_another(&self, state: &State, task: Runnable, wakes_itself: bool) {
        let is_wanted = |hosted: &&Hosted| {
            ptr::eq(&*hosted.state, state)
                && hosted.runner.takes(state.address())
                && !hosted.runner.orders.has_left()
        };
        let found = self.runners().and_then(|runners| runners.lock().iter().find(is_wanted).cloned());
        let Some(Hosted { runner, .. }) = found else { return state.schedule_elsewhere(task) };
        self.wake(&runner);
        state.give(&runner, task, wakes_itself);
    }

    /// Makes this thread poll a runner of this host soon: wakes the `run`, by a mark if that is polled with
    /// the waker of the host's own future.
    #[inline]
    fn wake(&self, runner: &Runner) {
        if runner.own.is_root() {
            self.woken.set(true);
        } else {
            runner.sleeper.wake();
        }
    }

    /// Returns whether `waker` is that of the host's own future.
    fn is_root(&self, waker: &Waker) -> bool {
        ptr::eq(unwrapped(waker).data(), self.root)
    }

    /// Returns whether this host polls with `waker`: its own future, or the future inside one of its runners.
    fn polls_with(&self, waker: &Waker) -> bool {
        // A waker made of an `Arc` carries the address of what is in it.
        let data = unwrapped(waker).data();
        let is_inner = |hosted: &Hosted| ptr::eq(data, Arc::as_ptr(&hosted.runner).cast());
        ptr::eq(data, self.root) || self.runners().is_some_and(|runners| runners.lock().iter().any(is_inner))
    }

    /// Records that a hosted runner is about to be polled: tasks that are woken between two polls go there.
    /// Opens the host again if it is watched.
    #[inline]
    pub(super) fn start_poll(&self, runner: &Arc<Runner>) {
        self.open.set(self.watched.get());
        self.last.set(Arc::as_ptr(runner));
    }

    /// Hosts `runner` from now on, if it is polled with the `waker` of this host or of another of its
    /// runners. Returns whether the runner is hosted; never if the host has no pool.
    pub(super) fn adopt(&self, state: &StateRef, runner: &Arc<Runner>, waker: &Waker) -> bool {
        let Some(surroundings) = self.surroundings.as_ref().filter(|_| self.polls_with(waker)) else {
            return false;
        };
        runner.own.set_root(self.is_root(waker));
        let mut runners = surroundings.runners().lock();
        if runners.iter().any(|known| Arc::ptr_eq(&known.runner, runner)) {
            return true;
        }
        runners.push(Hosted { state: state.clone(), runner: runner.clone() });
        self.several.set(runners.len() > 1);
        drop(runners);
        surroundings.note_hosted(state);
        true
    }

    /// Removes the matching runners, also from their executors. The tasks in them go to the injector, and
    /// other runners are woken for them.
    fn forget(&self, which: impl Fn(&Hosted) -> bool) {
        let Some(surroundings) = &self.surroundings else { return };
        loop {
            let mut runners = surroundings.runners().lock();
            let Some(at) = runners.iter().position(&which) else { break };
            let gone = runners.remove(at);
            let left = runners.first().map_or(ptr::null(), |first| Arc::as_ptr(&first.runner));
            self.last.set(left);
            self.several.set(runners.len() > 1);
            drop(runners);
            surroundings.note_forgotten(&gone.runner, left.is_null());
            gone.state.leave(&gone.runner);
        }
    }

    /// Removes the runners that [`rest`](Self::rest) found to have left. Wakes other runners, so the caller
    /// must not lead (LF3).
    #[inline]
    pub(crate) fn forget_left(&self) {
        if self.stale.replace(false) {
            self.forget(|hosted| hosted.runner.orders.has_left());
        }
    }

    /// Closes the host, because its frame is left, and removes all runners. Most are gone with the frame's
    /// future; the `run` of one may have moved elsewhere, and its runner must not get tasks from here any
    /// more.
    pub(crate) fn close(&self) {
        self.open.set(false);
        self.forget(|_| true);
    }

    /// Moves the tasks in the runners of this host to the injector, and wakes other runners for them: a
    /// `block_on` that is nested in this one may wait for them.
    pub(crate) fn hand_over(&self) {
        let hosted = self.runners().map_or(Vec::new(), |runners| runners.lock().clone());
        hosted.iter().for_each(|hosted| hosted.state.hand_over(&hosted.runner));
    }

    /// Puts the runners into the lines of their executors, because the thread is about to sleep. Returns
    /// false if the thread must not sleep; then no runner is in a line. One of them has tasks after all, and
    /// its `run` is woken; or one of them has left, and [`forget_left`](Self::forget_left) has to be called.
    pub(crate) fn rest(&self) -> bool {
        let Some(runners) = self.runners() else { return true };
        let hosted = runners.lock();
        if hosted.iter().any(|hosted| hosted.runner.orders.has_left()) {
            // Not removed here: that wakes other runners, and this thread may lead (LF3).
            self.stale.set(true);
            self.woken.set(true);
            return false;
        }
        // `rest` and `rise` run no foreign code, so the lock may be held (LF3).
        let mut left_tasks = Vec::new();
        let laden = hosted.iter().position(|hosted| match hosted.state.rest(&hosted.runner) {
            Rest::Sleeps => false,
            Rest::LeavesTasks => {
                left_tasks.push(hosted.state.clone());
                false
            }
            Rest::HasTasks => true,
        });
        let laden = laden.map(|laden| {
            hosted[..laden].iter().for_each(|hosted| _ = hosted.state.rise(&hosted.runner));
            hosted[laden].runner.clone()
        });
        drop(hosted);
        left_tasks.iter().for_each(|state| state.notify_from_afar());
        laden.as_ref().inspect(|laden| self.wake(laden)).is_none()
    }

    /// Takes the runners out of the lines, because the thread is awake.
    pub(crate) fn rise(&self) {
        if let Some(runners) = self.runners() {
            runners.lock().iter().for_each(|hosted| _ = hosted.state.rise(&hosted.runner));
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
