//! What the current thread hosts: the runners that tasks woken here go to.
//!
//! A `block_on` is one *frame* on the thread's stack. A runner that is polled inside it is *hosted* by it until it
//! is dropped: between two polls too, because that is when the thread leads and fires wakers. A nested `block_on`
//! is a frame of its own, in which the runners below are suspended; tasks woken there are surplus (D5).
//!
//! To leave a task for a runner is a promise: its thread comes by soon, or the deputy notices that it does not. Nobody can
//! promise that for a runner that is polled with somebody else's waker. It may be in somebody else's `block_on`, on a thread
//! that no deputy knows, or inside a task of a runner below, which it blocks. So it is not hosted.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use async_task::Runnable;

use super::runner::Runner;
use super::state::State;
use crate::sync::thread_local;
use crate::waking;

/// What the executor tells the thread's surroundings.
pub(crate) trait Surroundings: Send + Sync {
    /// The thread hosts this runner from now on.
    fn hosts(&self, runner: &Arc<Runner>);
    /// Somebody else runs the executor of a runner that is hosted here: one may come to wait for the other.
    fn has_company(&self);
    /// Whether this waker wakes the frame's own root future.
    fn is_root(&self, waker: &Waker) -> bool;
    /// The runner is gone.
    fn forgets(&self, runner: &Arc<Runner>);
    /// The thread is about to run a task that is known to block: somebody else should lead meanwhile.
    fn cover(&self);
}

struct Hosted {
    runner: Arc<Runner>,
    waker: Waker,
    /// The waker is that of the frame's own root future.
    is_root: bool,
}

struct Frame {
    hosted: Vec<Hosted>,
    /// Its pool has a deputy, or will have one as soon as there is another thread to help this one.
    watched: bool,
    surroundings: Arc<dyn Surroundings>,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    /// The runner whose `poll` is on top of this thread's stack.
    static RUNNING: Cell<*const Runner> = const { Cell::new(ptr::null()) };
    /// Tasks may be left for the runners of the innermost frame: it is watched, and nobody else's `block_on` is on top of
    /// the poll that is in progress.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// How many tasks a runner may poll before this thread looks at the reactor.
    static BUDGET: Cell<u32> = const { Cell::new(BUDGET_ALONE) };
}

/// Tasks polled in one go where no event waits.
const BUDGET_ALONE: u32 = 128;
/// Tasks polled in one go where fetched events wait for this thread's next look.
const BUDGET_BETWEEN_EVENTS: u32 = 8;

/// Opens a frame; dropping the value closes it.
#[derive(Debug)]
pub(crate) struct Attendance {
    /// The runner below, which is suspended as long as this frame is open.
    suspended: *const Runner,
    /// What `WATCHED` says of the frame below.
    watched_below: bool,
}

impl Attendance {
    pub(crate) fn new(surroundings: Arc<dyn Surroundings>) -> Self {
        suspend_innermost();
        FRAMES.with_borrow_mut(|frames| {
            frames.push(Frame { hosted: Vec::new(), watched: false, surroundings })
        });
        Self { suspended: RUNNING.replace(ptr::null()), watched_below: WATCHED.replace(false) }
    }

    /// From now on a deputy sees it when this thread is stuck, so that tasks may be left here.
    pub(crate) fn is_watched(&self) {
        FRAMES.with_borrow_mut(|frames| frames.last_mut().expect("this frame").watched = true);
        WATCHED.set(true);
    }

    /// Whether this frame hosts a runner.
    #[inline]
    pub(crate) fn is_host(&self) -> bool {
        FRAMES.with_borrow(|frames| frames.last().is_some_and(|frame| !frame.hosted.is_empty()))
    }

    /// Says whether fetched events wait for this thread's next look.
    #[inline]
    pub(crate) fn events_wait(&self, waiting: bool) {
        BUDGET.set(if waiting { BUDGET_BETWEEN_EVENTS } else { BUDGET_ALONE });
    }

    /// The thread is about to sleep: its runners say so to their executors. False if one of them has tasks, after
    /// all; then none of them rests.
    pub(crate) fn rest(&self) -> bool {
        Self::prune();
        // One at a time, and the frames not borrowed meanwhile: a runner that rests may wake others (LF3).
        for at in 0.. {
            let Some(runner) = Self::hosted(at, |here| here.runner.clone()) else { break };
            if !runner.rest() {
                (0..at)
                    .filter_map(|before| Self::hosted(before, |here| here.runner.clone()))
                    .for_each(|rested| rested.rise());
                Self::hosted(at, |here| here.waker.clone()).into_iter().for_each(waking::wake);
                return false;
            }
        }
        true
    }

    /// What `f` says of a runner of the innermost frame.
    fn hosted<R>(at: usize, f: impl FnOnce(&Hosted) -> R) -> Option<R> {
        FRAMES.with_borrow(|frames| Some(f(frames.last()?.hosted.get(at)?)))
    }

    /// Forgets runners that were closed elsewhere: their futures were moved to another thread, or dropped there.
    fn prune() {
        let stale = FRAMES.with_borrow(|frames| {
            let frame = frames.last()?;
            let closed = frame.hosted.iter().find(|here| here.runner.is_closed())?;
            Some(closed.runner.clone())
        });
        if let Some(stale) = stale {
            forget(&stale);
            Self::prune();
        }
    }

    /// The thread is awake.
    pub(crate) fn rise(&self) {
        FRAMES.with_borrow(|frames| {
            let hosted = frames.last().map_or(&[][..], |frame| &frame.hosted);
            hosted.iter().for_each(|here| here.runner.rise());
        });
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        // The runners of the frame are gone with its root future, except one that was moved elsewhere: it must not
        // be fed from here any more.
        let frame = FRAMES.with_borrow_mut(Vec::pop);
        RUNNING.set(self.suspended);
        WATCHED.set(self.watched_below);
        let Some(Frame { hosted, surroundings, .. }) = frame else { return };
        for here in hosted {
            here.runner.close();
            surroundings.forgets(&here.runner);
        }
    }
}

/// Whoever waits in a frame on top may wait for what was left for the innermost one's runners: that is for others now.
fn suspend_innermost() {
    let runners: Vec<_> = FRAMES.with_borrow(|frames| {
        frames
            .last()
            .map_or(Vec::new(), |frame| frame.hosted.iter().map(|here| here.runner.clone()).collect())
    });
    for runner in runners {
        runner.hand_over();
    }
}

impl Frame {
    /// Whether it is this frame that polls with this waker: its root future, or the future inside one of its runners.
    fn polls_with(&self, waker: &Waker) -> bool {
        // A waker made of an `Arc` carries the address of what is in it.
        let of_runner = |here: &Hosted| ptr::eq(waker.data(), Arc::as_ptr(&here.runner).cast());
        self.surroundings.is_root(waker) || self.hosted.iter().any(of_runner)
    }
}

/// A run, or a ticker, is polled here with `waker`. If that is neither a frame's nor the running task's, somebody else's
/// `block_on` may be on top of this thread's stack, and about to block it: what the runner below has is for others, and what is
/// woken here until that runner is polled again, too.
pub(super) fn stranger_on_top(waker: &Waker) {
    let is_ours = with_running(|runner| runner.is_some_and(|runner| runner.polls_with(waker)))
        || FRAMES
            .try_with(|frames| frames.borrow().last().is_some_and(|frame| frame.polls_with(waker)))
            .unwrap_or(true);
    if !is_ours && WATCHED.try_with(|watched| watched.replace(false)).unwrap_or(false) {
        suspend_innermost();
    }
}

/// A runner's `poll` is on the stack.
pub(super) struct Running {
    before: *const Runner,
}

impl Running {
    /// Enters `runner`'s poll.
    #[inline]
    pub(super) fn enter(runner: &Arc<Runner>) -> Self {
        Self { before: RUNNING.replace(Arc::as_ptr(runner)) }
    }
}

/// Polls a task that was taken out by hand, on top of another one's poll, perhaps: what is said of the runner that polls
/// that one is not about this one.
pub(crate) fn run_beside(task: Runnable) {
    let _none = RUNNING.try_with(|running| Running { before: running.replace(ptr::null()) });
    task.run();
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.before);
    }
}

/// Where a runner is hosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In this thread's frame.
    Here,
    /// In none: somebody else polls it.
    Nowhere,
}

/// Hosts `runner` in the current frame, if it is that which polls it. Cheap if it is there with the same waker already.
#[inline]
pub(super) fn host(runner: &Arc<Runner>, waker: &Waker) -> Home {
    let change = FRAMES.try_with(|frames| {
        let frames = frames.borrow();
        let frame = frames.last()?;
        WATCHED.set(frame.watched);
        let here = frame.hosted.iter().find(|here| Arc::ptr_eq(&here.runner, runner));
        if here.is_some_and(|here| here.waker.will_wake(waker)) {
            return Some(false);
        }
        frame.polls_with(waker).then_some(true)
    });
    // Where the thread's locals are gone, it hosts nothing.
    match change.ok().flatten() {
        None => Home::Nowhere,
        Some(false) => Home::Here,
        Some(true) => {
            adopt(runner, waker);
            Home::Here
        }
    }
}

#[cold]
fn adopt(runner: &Arc<Runner>, waker: &Waker) {
    let surroundings =
        FRAMES.with_borrow(|frames| frames.last().expect("the caller found it").surroundings.clone());
    let is_root = surroundings.is_root(waker);
    let fresh = Hosted { runner: runner.clone(), waker: waker.clone(), is_root };
    let (old, new) = FRAMES.with_borrow_mut(|frames| {
        let frame = frames.last_mut().expect("the caller found it");
        let known = frame.hosted.iter_mut().find(|here| Arc::ptr_eq(&here.runner, runner));
        match known {
            Some(here) => (Some(std::mem::replace(here, fresh)), false),
            None => {
                frame.hosted.push(fresh);
                (None, true)
            }
        }
    });
    drop(old);
    if new {
        surroundings.hosts(runner);
        runner.is_hosted_in(&surroundings);
    }
}

/// Forgets `runner`, which is being dropped, in all frames of this thread.
pub(super) fn forget(runner: &Arc<Runner>) {
    let mut gone = Vec::new();
    let _ = FRAMES.try_with(|frames| {
        for frame in frames.borrow_mut().iter_mut() {
            if let Some(at) = frame.hosted.iter().position(|here| Arc::ptr_eq(&here.runner, runner)) {
                gone.push((frame.hosted.remove(at), frame.surroundings.clone()));
            }
        }
    });
    for (_, surroundings) in gone {
        surroundings.forgets(runner);
    }
}

/// Shows `place` the runner of `executor` to which a task woken on this thread goes, and has it polled soon. `place`
/// calls no waker.
#[inline]
pub(super) fn with_runner_of<R>(executor: *const State, place: impl FnOnce(&Runner) -> R) -> Option<R> {
    if !WATCHED.try_with(Cell::get).unwrap_or(false) {
        return None;
    }
    let running = RUNNING.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: a runner is in `RUNNING` only while its `poll`, which keeps it alive, is on this thread's stack.
    let running = unsafe { running.as_ref() };
    if let Some(runner) = running.filter(|runner| runner.is_of(executor)) {
        return Some(place(runner));
    }
    let (placed, foreign) = FRAMES
        .try_with(|frames| {
            let frames = frames.borrow();
            let here = frames.last()?.hosted.iter().find(|here| here.runner.is_of(executor))?;
            let placed = place(&here.runner);
            if here.is_root {
                // Our own code, which only sets a flag.
                here.waker.wake_by_ref();
                return Some((placed, None));
            }
            Some((placed, Some(here.waker.clone())))
        })
        .ok()??;
    // Somebody else's code, which may do anything, so the frames are not borrowed any more (LF3).
    foreign.into_iter().for_each(waking::wake);
    Some(placed)
}

/// The runner whose poll is on top of this thread's stack.
#[inline]
pub(super) fn with_running<R>(f: impl FnOnce(Option<&Runner>) -> R) -> R {
    let running = RUNNING.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: as in `with_runner_of`.
    f(unsafe { running.as_ref() })
}

/// A number that tells this thread from all others that live.
#[inline]
pub(super) fn this_thread() -> usize {
    RUNNING.with(|here| ptr::from_ref(here).addr())
}

/// How many tasks a runner may poll in one go here.
#[inline]
pub(super) fn budget() -> u32 {
    BUDGET.get()
}

/// Asks the surroundings to have somebody lead while a slow task runs.
#[cold]
pub(super) fn cover() {
    let surroundings = FRAMES.with_borrow(|frames| Some(frames.last()?.surroundings.clone()));
    if let Some(surroundings) = surroundings {
        surroundings.cover();
    }
}
