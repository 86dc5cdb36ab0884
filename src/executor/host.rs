//! [`Host`]: a `block_on` as the executor sees it, the host of the runners to which tasks go that are woken in it.
//!
//! A runner that is polled inside of a `block_on` is *hosted* by it until it is dropped: between two polls too, because
//! that is when the thread leads and fires wakers. A nested `block_on` is a host of its own, and what waits in the runners below
//! is for others then (D5).
//!
//! To leave a task for a runner is a promise: its thread comes by soon, or the deputy notices that it does not. Nobody can
//! promise that for a runner that is polled with somebody else's waker. It may be in somebody else's `block_on`, on a thread
//! that no deputy knows, or inside a task of a runner below, which it blocks. So it is not hosted.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use async_task::{Runnable, ScheduleInfo};

use super::runner::{Caught, Runner};
use super::state::{State, StateRef};
use crate::frame::{self, Here};
use crate::sync::{self, Mutex, MutexGuard};

/// A runner, and the executor whose tasks it runs.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    pub(crate) state: StateRef,
    pub(crate) runner: Arc<Runner>,
}

/// The runners of one host. Changed by its own thread only; the deputy looks.
#[derive(Debug, Default)]
pub(crate) struct Runners(Mutex<Vec<Hosted>>);

impl Runners {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Hosted>> {
        sync::lock(&self.0)
    }
}

/// Where a host is.
pub(crate) trait Surroundings: Send + Sync {
    /// The runners that are hosted here.
    fn runners(&self) -> &Runners;
    /// A runner of this executor is hosted from now on.
    fn hosts(&self, executor: &State);
    /// A runner is not any more; nor is any, if it was the last.
    fn forgets(&self, runner: &Runner, last: bool);
    /// The thread is about to run a task that is known to block, or to compute for long: somebody else should lead meanwhile.
    fn cover(&self, known: Caught);
}

/// Tasks polled in one go where no event waits, or on a thread that is in no `block_on` of ours.
pub(super) const BUDGET_ALONE: u32 = 128;
/// Tasks polled in one go where fetched events wait for this thread's next look.
const BUDGET_BETWEEN_EVENTS: u32 = 8;

/// The executor's part of a frame.
pub(crate) struct Host {
    surroundings: Option<Arc<dyn Surroundings>>,
    /// What the waker of the frame's own future points to.
    root: *const (),
    /// That future was woken, by its own thread.
    woken: Cell<bool>,
    /// The runner that was polled here last; it is hosted here.
    last: Cell<*const Runner>,
    /// There are others.
    several: Cell<bool>,
    /// Some of them were found to have left.
    stale: Cell<bool>,
    /// A deputy sees it when this thread is stuck.
    watched: Cell<bool>,
    /// Tasks may be left here: it is watched, and nobody else's `block_on` is on top of the poll that is in progress.
    open: Cell<bool>,
    /// How many tasks a runner may poll before this thread looks at the reactor.
    budget: Cell<u32>,
}

/// The host on top of this thread's stack.
#[inline]
pub(super) fn top(here: &Here) -> Option<&Host> {
    // SAFETY: all frames are the pool's, whose part begins with a host; and whoever enters one meanwhile leaves it.
    unsafe { here.part::<Host>() }
}

/// A task was woken: it goes where it will be polled soonest without waking anybody. On a thread that hosts a runner of its
/// executor that is there, in the slot if it is free; everything else is surplus.
#[inline]
pub(super) fn schedule(state: &State, task: Runnable, info: ScheduleInfo) {
    frame::here(|here| {
        let Some(host) = top(here).filter(|host| host.open.get()) else {
            return state.schedule_elsewhere(task);
        };
        match running(here).filter(|runner| runner.is_of(state.address())) {
            Some(runner) => state.give(runner, task, info),
            None => host.schedule_between_polls(state, task, info),
        }
    });
}

/// The runner whose poll is on top of this thread's stack.
#[inline]
fn running(here: &Here) -> Option<&Runner> {
    // SAFETY: a runner runs only while its `poll`, which keeps it alive, is on this thread's stack.
    unsafe { here.runner().cast::<Runner>().as_ref() }
}

/// Shows `f` the runner whose poll is on top of this thread's stack.
#[inline]
pub(super) fn with_running<R>(f: impl FnOnce(Option<&Runner>) -> R) -> R {
    frame::here(|here| f(running(here)))
}

/// A poll is on top of this thread's stack: a runner's, or that of a task that was taken out by hand.
pub(super) struct OnStack<'a>(&'a Here, frame::Running);

impl<'a> OnStack<'a> {
    #[inline]
    pub(super) fn begin(here: &'a Here, runner: *const Runner, budget: u32) -> Self {
        Self(here, here.begins(frame::Running::new(runner.cast(), budget)))
    }
}

impl Drop for OnStack<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.resumes(self.1);
    }
}

/// Polls a task that was taken out by hand, on top of another one's poll, perhaps: what is said of the runner that polls
/// that one is not about this one.
pub(crate) fn run_beside(task: Runnable) {
    frame::here(|here| {
        if here.runner().is_null() {
            task.run();
        } else {
            let _none = OnStack::begin(here, ptr::null(), 0);
            task.run();
        }
    });
}

/// Somebody should lead while a slow task runs.
#[cold]
pub(super) fn cover(known: Caught) {
    let surroundings = frame::here(|here| top(here)?.surroundings.clone());
    surroundings.iter().for_each(|surroundings| surroundings.cover(known));
}

/// Whether it is the `block_on` on top of this thread's stack that awaits with this waker.
pub(crate) fn is_awaited_on_top(waker: &Waker) -> bool {
    frame::here(|here| top(here).is_some_and(|host| ptr::eq(waker.data(), host.root)))
}

/// A run, or a ticker, is polled here with `waker`. If that is neither the host's nor the running task's, somebody else's
/// `block_on` may be on top of this thread's stack, and about to block it: what is in the runners below is for others, and what is
/// woken here until one of them is polled again, too.
pub(super) fn stranger_on_top(waker: &Waker) {
    frame::here(|here| {
        let is_of_task = running(here).is_some_and(|runner| runner.polls_with(waker));
        let host = top(here).filter(|host| !is_of_task && !host.polls_with(waker));
        if let Some(host) = host.filter(|host| host.open.replace(false)) {
            host.hand_over();
        }
    });
}

/// A runner's future is gone, from the host at this address, if any: it is forgotten there, at once if that is on this thread.
pub(super) fn forget(host: usize, hosted: &Hosted) {
    if host == 0 {
        return hosted.state.leave(&hosted.runner);
    }
    frame::here(|here| {
        // SAFETY: as in `top`.
        match unsafe { here.parts::<Host>() }.find(|other| other.address() == host) {
            Some(host) => host.forget(|known| Arc::ptr_eq(&known.runner, &hosted.runner)),
            None => hosted.runner.left.set(true),
        }
    });
}

impl Host {
    /// A host whose own future is polled with a waker that points to `root`.
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
            budget: Cell::new(BUDGET_ALONE),
        }
    }

    /// Tells this host from all others that are there now.
    pub(super) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Whether its own future was woken, by its own thread.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.get()
    }

    /// Sets or takes back what [`is_woken`](Self::is_woken) says; returns what it said.
    #[inline]
    pub(crate) fn set_woken(&self, woken: bool) -> bool {
        self.woken.replace(woken)
    }

    /// From now on a deputy sees it when this thread is stuck, so that tasks may be left here.
    pub(crate) fn is_watched(&self) {
        self.watched.set(true);
        self.open.set(true);
    }

    /// Says whether fetched events wait for this thread's next look.
    #[inline]
    pub(crate) fn events_wait(&self, waiting: bool) {
        self.budget.set(if waiting { BUDGET_BETWEEN_EVENTS } else { BUDGET_ALONE });
    }

    /// How many tasks a runner may poll in one go here.
    #[inline]
    pub(super) fn budget(&self) -> u32 {
        self.budget.get()
    }

    fn runners(&self) -> Option<&Runners> {
        self.surroundings.as_ref().map(|surroundings| surroundings.runners())
    }

    /// A task was woken while no runner of its executor is being polled here: by an event, say.
    #[inline(never)]
    fn schedule_between_polls(&self, state: &State, task: Runnable, info: ScheduleInfo) {
        // SAFETY: what is hosted here stays until this thread forgets it, which calls no waker here.
        let last = unsafe { self.last.get().as_ref() };
        let runner = match last.filter(|runner| runner.is_of(state.address())) {
            Some(runner) if !runner.left.is_set() => runner,
            _ if self.several.get() => return self.schedule_for_another(state, task, info),
            _ => return state.schedule_elsewhere(task),
        };
        self.wake(runner);
        state.give(runner, task, info);
    }

    #[cold]
    fn schedule_for_another(&self, state: &State, task: Runnable, info: ScheduleInfo) {
        let is_wanted = |hosted: &&Hosted| ptr::eq(&*hosted.state, state) && !hosted.runner.left.is_set();
        let found = self.runners().and_then(|runners| runners.lock().iter().find(is_wanted).cloned());
        let Some(Hosted { runner, .. }) = found else { return state.schedule_elsewhere(task) };
        self.wake(&runner);
        state.give(&runner, task, info);
    }

    /// Has a runner of this host polled soon.
    #[inline]
    fn wake(&self, runner: &Runner) {
        if runner.is_root.is_set() {
            self.woken.set(true);
        } else {
            runner.sleeper.wake();
        }
    }

    /// Whether it is this host that polls with this waker: its own future, or the future inside one of its runners.
    fn polls_with(&self, waker: &Waker) -> bool {
        // A waker made of an `Arc` carries the address of what is in it.
        let is_inner = |hosted: &Hosted| ptr::eq(waker.data(), Arc::as_ptr(&hosted.runner).cast());
        ptr::eq(waker.data(), self.root)
            || self.runners().is_some_and(|runners| runners.lock().iter().any(is_inner))
    }

    /// A runner that is hosted here is polled.
    #[inline]
    pub(super) fn polls(&self, runner: &Arc<Runner>) {
        self.open.set(self.watched.get());
        self.last.set(Arc::as_ptr(runner));
    }

    /// Hosts a runner from now on, if it is this host that polls it with `waker`.
    pub(super) fn adopts(&self, state: &StateRef, runner: &Arc<Runner>, waker: &Waker) -> bool {
        let Some(surroundings) = self.surroundings.as_ref().filter(|_| self.polls_with(waker)) else {
            return false;
        };
        runner.is_root.set(ptr::eq(waker.data(), self.root));
        let mut runners = surroundings.runners().lock();
        if runners.iter().any(|known| Arc::ptr_eq(&known.runner, runner)) {
            return true;
        }
        runners.push(Hosted { state: state.clone(), runner: runner.clone() });
        self.several.set(runners.len() > 1);
        drop(runners);
        surroundings.hosts(state);
        true
    }

    /// Forgets some runners: what is in them is for others.
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
            surroundings.forgets(&gone.runner, left.is_null());
            gone.state.leave(&gone.runner);
        }
    }

    /// Forgets the runners that have left. Wakes others, so the caller does not lead (LF3).
    #[inline]
    pub(crate) fn forget_left(&self) {
        if self.stale.replace(false) {
            self.forget(|hosted| hosted.runner.left.is_set());
        }
    }

    /// The frame is left. Its runners are gone with its future, except one that was moved elsewhere: it must not be fed from
    /// here any more.
    pub(crate) fn close(&self) {
        self.open.set(false);
        self.forget(|_| true);
    }

    /// Whoever waits on top of this host may wait for what was left here: that is for others now.
    pub(crate) fn hand_over(&self) {
        let hosted = self.runners().map_or(Vec::new(), |runners| runners.lock().clone());
        hosted.iter().for_each(|hosted| hosted.state.hand_over(&hosted.runner));
    }

    /// The thread is about to sleep: its runners say so to their executors. False if one of them has tasks, after
    /// all; then none of them rests.
    pub(crate) fn rest(&self) -> bool {
        let Some(runners) = self.runners() else { return true };
        let hosted = runners.lock();
        if hosted.iter().any(|hosted| hosted.runner.left.is_set()) {
            // Not forgotten here, which wakes others, because this thread may lead.
            self.stale.set(true);
            self.woken.set(true);
            return false;
        }
        // None of that runs anybody's code, so it may be done under the lock (LF3).
        let Some(laden) = hosted.iter().position(|hosted| !hosted.state.rest(&hosted.runner)) else {
            return true;
        };
        hosted[..laden].iter().for_each(|hosted| _ = hosted.state.rise(&hosted.runner));
        let laden = hosted[laden].runner.clone();
        drop(hosted);
        self.wake(&laden);
        false
    }

    /// The thread is awake.
    pub(crate) fn rise(&self) {
        if let Some(runners) = self.runners() {
            runners.lock().iter().for_each(|hosted| _ = hosted.state.rise(&hosted.runner));
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
