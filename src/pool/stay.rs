//! [`Stay`]: the pool's part of a frame. A frame is one `block_on` as its own thread sees it, or a visit:
//! user code that the pool calls outside of any `block_on`.

use std::cell::{Cell, OnceCell};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use super::entered::{self, EnteredPools};
use super::{Pool, Station};
use crate::ambient::{self, Ambient};
use crate::executor::Host;
use crate::frame::{self, Frame, Here, OnTop};

/// Limit of tasks on top of one another on one stack.
const DEEPEST: u32 = 64;

/// The pool's state of one `block_on`, or of one visit, for its own thread.
// The executor reads this frame as a frame of a `Host`, so `host` comes first.
#[repr(C)]
pub(crate) struct Stay {
    pub(crate) host: Host,
    /// `None` for a visit.
    station: Option<Arc<Station>>,
    pool: OnceCell<Arc<Pool>>,
    /// How many tasks wait on this thread for others on top of them, and the stack address at which the
    /// first of those others began.
    depth: Cell<(u32, usize)>,
    /// Pools that were entered by hand on top of this frame.
    entered: EnteredPools,
    _ambient: Ambient,
}

// `Stay` and `Host` have the same alignment, so the part of a frame lies at the same address for both.
const _: () = assert!(align_of::<Stay>() == align_of::<Host>());

/// A `block_on` in progress; dropping the value leaves the `block_on`.
pub(crate) struct StayGuard<'a> {
    frame: OnTop<'a, Stay>,
    /// The `block_on` below has to rejoin its pool's leadership when this one ends.
    resumes: bool,
}

impl Stay {
    /// Creates the frame of a `block_on`, which `begin` enters.
    pub(crate) fn at(station: &Arc<Station>) -> Frame<Self> {
        let root = Arc::as_ptr(station).cast();
        Self::frame(Host::new(root, Some(station.clone())), Some(station.clone()), OnceCell::new())
    }

    /// Creates the frame of a visit: a hook, or the drop of a future, outside of any `block_on`. Free
    /// functions act on that pool meanwhile.
    pub(super) fn visit(pool: &Arc<Pool>) -> Frame<Self> {
        Self::frame(Host::new(ptr::null(), None), None, OnceCell::from(pool.clone()))
    }

    /// Creates a frame that is not entered yet. The calling thread is in the ambient context from now on,
    /// until the frame is dropped.
    fn frame(host: Host, station: Option<Arc<Station>>, pool: OnceCell<Arc<Pool>>) -> Frame<Self> {
        let depth = frame::here(|here| all(here).next().map_or((0, 0), |below| below.depth.get()));
        let (depth, entered, _ambient) = (Cell::new(depth), EnteredPools::new(), ambient::enter());
        Frame::new(Self { host, station, pool, depth, entered, _ambient })
    }

    /// Runs `code`, which polls a task, on top of the task that waits here, and returns its result. At most
    /// [`DEEPEST`] levels may be on top of one another. A level may begin only if it is less than half of
    /// `stack_size` away from the first level: the other half is for the tasks themselves.
    ///
    /// # Panics
    ///
    /// Panics if the tasks are nested too deeply. The panic is that of the waiting task, and affects no
    /// other.
    fn go_deeper<R>(&self, stack_size: usize, code: impl FnOnce() -> R) -> R {
        struct DepthGuard<'a>(&'a Cell<(u32, usize)>, (u32, usize));
        impl Drop for DepthGuard<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let marker = 0u8;
        let here = (&raw const marker).addr();
        let before @ (depth, first) = self.depth.get();
        let first = if depth == 0 { here } else { first };
        assert!(
            depth < DEEPEST && first.abs_diff(here) < stack_size / 2,
            "`block_on` is nested {depth} tasks deep on one thread, because a runtime of the current thread has no \
             other one: await instead of blocking, or build a runtime with workers"
        );
        let _back = DepthGuard(&self.depth, before);
        self.depth.set((depth + 1, first));
        code()
    }

    /// Returns whether the future of this `block_on` was woken.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.host.is_woken() || self.station.as_ref().is_some_and(|station| station.seat.root_woken())
    }

    /// Consumes all wake-ups of the future of this `block_on`. Returns whether there was one.
    #[inline]
    pub(crate) fn take_woken(&self) -> bool {
        let here = self.host.set_woken(false);
        self.station.as_ref().is_some_and(|station| station.seat.take_root()) || here
    }
}

/// Returns the `block_on`s and visits of this thread, the innermost first.
fn all(here: &Here) -> impl Iterator<Item = &Stay> {
    // SAFETY: the parts of all frames are `Stay`s: only this file makes frames.
    unsafe { here.parts() }
}

/// Calls `f` with the innermost pool that this thread is in or has entered by hand. Returns `None` if there
/// is none.
#[inline]
pub(crate) fn with_current_pool<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    with_innermost_pool(|_| true, f)
}

/// Calls `f` with the pool in which a `block_on` here would be: the innermost one, if a `block_on` is in it
/// or if it was entered by hand. Otherwise returns `None`: the pools of hooks and of closures that block do
/// not count, because the pool calls these outside of its threads' `block_on`s.
pub(super) fn with_pool_of_block_on<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    with_innermost_pool(|stay| stay.station.is_some(), f)
}

/// Calls `f` with the innermost pool that this thread is in or has entered by hand. Returns `None` if there
/// is no such pool. Also returns `None`, and tries no pool further out, if the thread is in it by a frame for
/// which `counts` returns false. For a pool that was entered by hand `counts` is not asked.
#[inline]
fn with_innermost_pool<R>(counts: impl FnOnce(&Stay) -> bool, f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    frame::here(|here| {
        for stay in all(here) {
            if stay.entered.any() {
                return stay.entered.with_last(f);
            }
            if let Some(pool) = stay.pool.get() {
                return counts(stay).then(|| f(pool));
            }
        }
        entered::with_outside(|outside| outside.with_last(f)).flatten()
    })
}

/// Runs `code`, which polls tasks of the pool. If a task of that pool waits below on this stack, the depth
/// is [limited](Stay::go_deeper).
pub(super) fn poll_deeper<R>(pool: &Arc<Pool>, stack_size: usize, code: impl FnOnce() -> R) -> R {
    frame::here(|here| {
        let works = |stay: &&Stay| stay.station.as_ref().is_some_and(|station| station.works_for(pool));
        match all(here).find(works) {
            Some(below) => below.go_deeper(stack_size, code),
            None => code(),
        }
    })
}

/// Calls `f` with the list to which a pool that is entered now belongs: that of the innermost frame, or the
/// list outside of all frames. Returns `None` if the thread is ending and that list is gone.
pub(super) fn with_entered<R>(f: impl FnOnce(&EnteredPools) -> R) -> Option<R> {
    frame::here(|here| match all(here).next() {
        Some(stay) => Some(f(&stay.entered)),
        None => entered::with_outside(f),
    })
}

/// Calls `f` with each list of pools that were entered on this thread, the innermost first, until `f` returns
/// a value, and returns that.
pub(super) fn find_entered<R>(mut f: impl FnMut(&EnteredPools) -> Option<R>) -> Option<R> {
    let found = frame::here(|here| all(here).find_map(|stay| f(&stay.entered)));
    found.or_else(|| entered::with_outside(f).flatten())
}

impl Drop for Stay {
    /// Moves the pools that were entered in this frame, and are not left, to the frame below. This frame is
    /// not the innermost any more.
    fn drop(&mut self) {
        if self.entered.any() {
            let entered = &self.entered;
            with_entered(|below| entered.move_to(below));
        }
    }
}

/// Calls `f` with the innermost `block_on` of this thread and its station. Skips visits on top of it; returns
/// `None` if the thread is in no `block_on`.
fn with_innermost<R>(f: impl FnOnce(&Stay, &Arc<Station>) -> R) -> Option<R> {
    frame::here(|here| {
        let (stay, station) = all(here).find_map(|stay| Some((stay, stay.station.as_ref()?)))?;
        Some(f(stay, station))
    })
}

/// Returns whether the future of this thread's innermost `block_on` was woken.
pub(super) fn is_woken() -> bool {
    with_innermost(|stay, _| stay.is_woken()).unwrap_or(false)
}

/// Calls `code` as a piece of work of this thread's innermost `block_on`: the deputy notices if it blocks.
pub(super) fn at_work(code: impl FnOnce()) {
    with_innermost(|_, station| {
        station.stage.begin_work();
        code();
        station.stage.end_work();
    });
}

impl Frame<Stay> {
    /// Begins a `block_on`, in no pool yet. If another one is below, this suspends it, and hands the tasks
    /// that wait there to other threads.
    pub(crate) fn begin(&self) -> StayGuard<'_> {
        let resumes = with_innermost(|below, station| {
            below.host.hand_over();
            station.suspend(below.pool.get())
        });
        StayGuard { frame: self.enter(), resumes: resumes.unwrap_or(false) }
    }
}

impl StayGuard<'_> {
    /// Keeps a waker that was called: see [`Frame::keep`].
    #[inline]
    pub(crate) fn keep(&self, waker: Option<Waker>) {
        self.frame.keep(waker);
    }

    /// Drops the kept waker and forgets the runners that have left. Both may run user code, so this thread
    /// must not lead (LF2); and both may wake the future, so check for a wake-up after this.
    #[inline]
    pub(crate) fn clear_up(&self) {
        // It was kept for the task woken last, which has had the time to wait again.
        self.keep(None);
        self.host.forget_left();
    }

    /// Prepares the thread for sleep: puts its runners into the lines of sleepers, and returns true. The
    /// caller calls [`Host::rise`] after the sleep. Returns false, with no runner in a line, if the thread
    /// has to stay awake: because the future of this `block_on` was woken; because a runner has tasks or its
    /// future was woken, and then its `run` is woken; or because a runner has left, and then the caller calls
    /// [`clear_up`](Self::clear_up) before the next attempt. A runner that asked for a poll before and got
    /// none keeps no thread awake: its tasks go to others.
    pub(crate) fn try_rest(&self) -> bool {
        // A runner may have been called for another runner's tasks while the runners began to rest.
        let rests = self.host.rest() && !self.is_woken();
        if !rests {
            self.host.rise();
        }
        rests
    }

    /// Joins the pool: from now on its deputy notices if this thread is stuck, and tasks may be left in its
    /// runners. Called once, and not for a visit: panics otherwise.
    pub(crate) fn join(&self, pool: &Arc<Pool>) {
        let stay = self.frame.part();
        let station = stay.station.as_ref().expect("a visit joins no pool");
        assert!(stay.pool.set(pool.clone()).is_ok(), "a `block_on` is in one pool");
        station.attach(pool);
        self.frame.set_leads(ptr::from_ref(&*pool.reactor).cast());
        pool.add_station(station);
        stay.host.set_watched();
    }
}

impl std::ops::Deref for StayGuard<'_> {
    type Target = Stay;

    fn deref(&self) -> &Stay {
        self.frame.part()
    }
}

impl Drop for StayGuard<'_> {
    /// Leaves the pool and the frame, and resumes the `block_on` below. Wakers may be called, so the thread
    /// must not lead. The future was dropped before.
    fn drop(&mut self) {
        self.keep(None);
        self.host.close();
        if let (Some(station), Some(pool)) = (self.station.as_ref(), self.pool.get()) {
            pool.remove_station(station);
        }
        // Leave the frame first: `with_innermost` has to find the `block_on` below.
        self.frame.leave();
        with_innermost(|below, station| {
            let pool = below.pool.get();
            station.resume(pool.filter(|_| self.resumes));
            // The deputy did not watch that `block_on` meanwhile, and its thread may sleep next.
            if let Some(pool) = pool {
                pool.notify_deputy();
            }
        });
    }
}
