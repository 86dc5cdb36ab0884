//! [`Stay`]: the pool's part of a frame. One `block_on`, as its own thread sees it; or a visit of the pool's to user code.

use std::cell::{Cell, OnceCell};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use super::entered::{self, Entered};
use super::{Pool, Station};
use crate::ambient::{self, Ambient};
use crate::executor::Host;
use crate::frame::{self, Frame, Here, OnTop};

/// Tasks on top of one another at most.
const DEEPEST: u32 = 64;

/// What a thread knows of its `block_on`, or visit.
// The executor sees a frame of what comes first.
#[repr(C)]
pub(crate) struct Stay {
    pub(crate) host: Host,
    /// `None` is a visit.
    station: Option<Arc<Station>>,
    pool: OnceCell<Arc<Pool>>,
    /// How many tasks wait on this thread for others on top of them, and where on its stack the first of these began.
    depth: Cell<(u32, usize)>,
    /// Pools that were entered by hand on top of it.
    entered: Entered,
    _ambient: Ambient,
}

// The part of a frame of either is at the same address.
const _: () = assert!(align_of::<Stay>() == align_of::<Host>());

/// A `block_on` in progress; dropping the value leaves it.
pub(crate) struct Staying<'a> {
    frame: OnTop<'a, Stay>,
    /// The one below is in its pool again after this.
    resumes: bool,
}

impl Stay {
    /// Of a `block_on`.
    pub(crate) fn at(station: &Arc<Station>) -> Frame<Self> {
        let root = Arc::as_ptr(station).cast();
        Self::frame(Host::new(root, Some(station.clone())), Some(station.clone()), OnceCell::new())
    }

    /// The thread is called by a pool outside of any `block_on`: in a hook, or to drop a future. Free functions act on that
    /// pool meanwhile.
    pub(super) fn visit(pool: &Arc<Pool>) -> Frame<Self> {
        Self::frame(Host::new(ptr::null(), None), None, OnceCell::from(pool.clone()))
    }

    fn frame(host: Host, station: Option<Arc<Station>>, pool: OnceCell<Arc<Pool>>) -> Frame<Self> {
        let depth = frame::here(|here| all(here).next().map_or((0, 0), |below| below.depth.get()));
        let (depth, entered, _ambient) = (Cell::new(depth), Entered::new(), ambient::enter());
        Frame::new(Self { host, station, pool, depth, entered, _ambient })
    }

    /// Takes note of a wake of this station's own future, if this is its thread and it is on top.
    #[inline]
    pub(super) fn woken_here(station: &Arc<Station>) -> bool {
        // SAFETY: all frames are made here.
        frame::here(|here| match unsafe { here.part::<Stay>() } {
            Some(Stay { host, station: Some(top), .. }) if Arc::ptr_eq(top, station) => {
                host.set_woken(true);
                true
            }
            _ => false,
        })
    }

    /// Runs `code`, which is a task's poll, on top of the task that waits here, on a thread with a stack of this size, of which
    /// half is for the tasks themselves.
    ///
    /// # Panics
    ///
    /// If that is too deep. Whoever waits here fails, and nobody else.
    pub(crate) fn go_deeper<R>(&self, stack_size: usize, code: impl FnOnce() -> R) -> R {
        struct Back<'a>(&'a Cell<(u32, usize)>, (u32, usize));
        impl Drop for Back<'_> {
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
            "`block_on` is nested {depth} tasks deep on one worker, because the runtime may have no more threads \
             (`Builder::max_threads`): let it have more, or await instead of blocking"
        );
        let _back = Back(&self.depth, before);
        self.depth.set((depth + 1, first));
        code()
    }

    /// Whether its own future was woken.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.host.is_woken() || self.station.as_ref().is_some_and(|station| station.seat.root_woken())
    }

    /// Consumes all wake-ups of its own future.
    #[inline]
    pub(crate) fn take_woken(&self) -> bool {
        let here = self.host.set_woken(false);
        self.station.as_ref().is_some_and(|station| station.seat.take_root()) || here
    }
}

/// What this thread knows of its `block_on`s and visits, the innermost first.
fn all(here: &Here) -> impl Iterator<Item = &Stay> {
    // SAFETY: all frames are made in this file.
    unsafe { here.parts() }
}

/// Shows `f` the innermost pool in which this thread is, unless it is another process's.
#[inline]
pub(super) fn with_current_pool<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    with_innermost_pool(|_| true, f)
}

/// Shows `f` the pool in which a `block_on` here would be: not that of a hook, or of what blocks on purpose, which are called by the pool
/// and are not its threads.
pub(super) fn with_pool_of_block_on<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    with_innermost_pool(|stay| stay.station.is_some(), f)
}

/// Shows `f` the innermost pool in which this thread is, or that was entered on it, unless it is another process's; or if the stay there does
/// not count.
#[inline]
fn with_innermost_pool<R>(counts: impl FnOnce(&Stay) -> bool, f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    frame::here(|here| {
        for stay in all(here) {
            if stay.entered.any() {
                return stay.entered.with_last(f);
            }
            if let Some(pool) = stay.pool.get() {
                return (counts(stay) && !pool.is_inherited()).then(|| f(pool));
            }
        }
        entered::with_outside(|outside| outside.with_last(f)).flatten()
    })
}

/// Runs `code`, which polls tasks of the pool: on top of another one of them, perhaps, and then not too [deep](Stay::go_deeper).
pub(super) fn deeper<R>(pool: &Arc<Pool>, stack_size: usize, code: impl FnOnce() -> R) -> R {
    frame::here(|here| {
        let works = |stay: &&Stay| stay.station.as_ref().is_some_and(|station| station.works_for(pool));
        match all(here).find(works) {
            Some(below) => below.go_deeper(stack_size, code),
            None => code(),
        }
    })
}

/// Shows `f` where on this thread pools are entered now: on top of the innermost frame, or outside of any.
pub(super) fn with_entered<R>(f: impl FnOnce(&Entered) -> R) -> Option<R> {
    frame::here(|here| match all(here).next() {
        Some(stay) => Some(f(&stay.entered)),
        None => entered::with_outside(f),
    })
}

/// Shows `f` all places where pools may have been entered on this thread, the innermost first, until it returns something.
pub(super) fn find_entered<R>(mut f: impl FnMut(&Entered) -> Option<R>) -> Option<R> {
    let found = frame::here(|here| all(here).find_map(|stay| f(&stay.entered)));
    found.or_else(|| entered::with_outside(f).flatten())
}

impl Drop for Stay {
    /// It is on top no longer. Pools that were entered in it, and are not left, are so where it was.
    fn drop(&mut self) {
        if self.entered.any() {
            let entered = &self.entered;
            with_entered(|below| entered.move_to(below));
        }
    }
}

/// Shows `f` the innermost `block_on`, and its station.
fn with_innermost<R>(f: impl FnOnce(&Stay, &Arc<Station>) -> R) -> Option<R> {
    frame::here(|here| {
        let (stay, station) = all(here).find_map(|stay| Some((stay, stay.station.as_ref()?)))?;
        Some(f(stay, station))
    })
}

impl Frame<Stay> {
    /// The thread begins a `block_on`. Another one below it is suspended, and what waits there is for others.
    pub(crate) fn begin(&self) -> Staying<'_> {
        let resumes = with_innermost(|below, station| {
            below.host.hand_over();
            station.suspend(below.pool.get().filter(|pool| !pool.is_inherited()))
        });
        Staying { frame: self.enter(), resumes: resumes.unwrap_or(false) }
    }
}

impl Staying<'_> {
    /// A waker was called that is left over: see [`Frame::keep`].
    #[inline]
    pub(crate) fn keep(&self, waker: Option<Waker>) {
        self.frame.keep(waker);
    }

    /// Lets go of what is left over. That may run anybody's code, so this thread does not lead (LF2); and it may wake the
    /// future, so that is looked at after this.
    #[inline]
    pub(crate) fn clears_up(&self) {
        // Whoever was woken last has had the time to wait again.
        self.keep(None);
        self.host.forget_left();
    }

    /// The thread is about to sleep. False if there is something to do after all.
    pub(crate) fn rests(&self) -> bool {
        // One runner may have been called for another one's tasks, while they said so.
        let rests = self.host.rest() && !self.is_woken();
        if !rests {
            self.host.rise();
        }
        rests
    }

    /// The `block_on` has a pool: from now on its deputy sees when this thread is stuck.
    pub(crate) fn joins(&self, pool: &Arc<Pool>) {
        let stay = self.frame.part();
        let station = stay.station.as_ref().expect("a visitor joins nothing");
        assert!(stay.pool.set(pool.clone()).is_ok(), "a `block_on` is in one pool");
        station.attach(pool);
        self.frame.leads(ptr::from_ref(&*pool.reactor).cast());
        let works = |below: &Stay| {
            let pool = below.pool.get()?;
            below.station.as_ref()?.works_for(pool).then(|| pool.clone())
        };
        if let Some(blocked) = frame::here(|here| all(here).skip(1).find_map(works)) {
            station.can_help(&blocked);
        }
        pool.enters(station);
        stay.host.is_watched();
    }
}

impl std::ops::Deref for Staying<'_> {
    type Target = Stay;

    fn deref(&self) -> &Stay {
        self.frame.part()
    }
}

impl Drop for Staying<'_> {
    /// The future is gone by now.
    fn drop(&mut self) {
        self.keep(None);
        self.host.close();
        let (station, pool) = (self.station.as_ref(), self.pool.get());
        if let (Some(station), Some(pool)) = (station, pool.filter(|pool| !pool.is_inherited())) {
            let helped = station.helps();
            helped.iter().filter(|pool| !pool.is_inherited()).for_each(|pool| pool.loses_helper(station));
            pool.leaves(station);
        }
        // It is on top no longer, whatever it says.
        self.frame.leave();
        with_innermost(|below, station| {
            let pool = below.pool.get().filter(|pool| !pool.is_inherited());
            station.resume(pool.filter(|_| self.resumes));
            // Nobody has looked at it meanwhile, and its thread may sleep next.
            pool.iter().for_each(|pool| pool.has_risen());
        });
    }
}
