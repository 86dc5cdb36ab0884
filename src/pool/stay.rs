//! [`Stay`]: a `block_on`, or a visit, on its thread's stack: a guard that enters it in all rooms, and
//! leaves it when it is dropped. A visit is user code that the pool calls outside of any `block_on`.
//!
//! Each room keeps what it has to know of the calling thread in a thread-local of its own, with a guard that
//! puts the values of the `block_on` below back: the reactor ([`HereGuard`]) which reactor the thread leads,
//! the executor ([`HostGuard`]) where woken tasks go, and this file in which pools the thread is, one
//! inside of the other.
//!
//! A pool can also be entered by hand, with an [`EnterGuard`]. It takes precedence over the pools that the
//! thread is in by then, and a `block_on` or visit that begins later takes precedence over it. Entries may
//! end in any order. An entry enters no other room: that would hide the `block_on` below from the wakers of
//! its tasks.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use super::{Pool, Station};
use crate::ambient::{self, Ambient};
use crate::executor::{self, Host, HostGuard};
use crate::leadership::Rank;
use crate::reactor::HereGuard;
use crate::sync::thread_local;

/// Limit of tasks on top of one another on one stack.
const DEEPEST: u32 = 64;

/// What the thread is in, on top of the other levels.
enum Level {
    /// A `block_on`, and the pool that it has joined.
    BlockOn(Arc<Station>, Option<Arc<Pool>>),
    Visit(Arc<Pool>),
    /// A pool that was entered by hand.
    Entered(Arc<Pool>),
}

thread_local! {
    /// The levels of the calling thread, the innermost last. Without a destructor, because a `block_on` may
    /// be called in one: an empty list is freed where `STATION` will not do so.
    static WITHIN: RefCell<ManuallyDrop<Vec<Level>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    /// How many tasks wait on this thread for others on top of them, and the stack address at which the
    /// first of those others began.
    static DEPTH: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
    /// The station of the last `block_on` that the program called here.
    static STATION: Kept = const { Kept(Cell::new(None)) };
}

struct Kept(Cell<Option<Arc<Station>>>);

impl Drop for Kept {
    fn drop(&mut self) {
        clear_up(self.0.take());
    }
}

/// Takes a station out of the list of its pool, and frees the list of levels if it is empty.
#[cold]
fn clear_up(station: Option<Arc<Station>>) {
    if let Some(station) = station {
        station.leave_list();
    }
    // Under shuttle the list may be gone already.
    _ = WITHIN.try_with(|levels| {
        let mut levels = levels.borrow_mut();
        if levels.is_empty() {
            drop(mem::take(&mut **levels));
        }
    });
}

/// Returns a station for a future of the user's that is awaited at `caller`: that which the thread keeps, or
/// a new one.
#[inline]
pub(super) fn station_for(caller: &'static Location<'static>) -> Arc<Station> {
    // In a destructor at the end of the thread none is kept.
    let station = match STATION.try_with(|kept| kept.0.take()).ok().flatten() {
        Some(station) if station.origin.is_here() && station.is_unshared() => station,
        other => {
            clear_up(other);
            Arc::new(Station::with(Rank::Guest, None))
        }
    };
    station.called_at.store(ptr::from_ref(caller).cast_mut(), Ordering::Relaxed);
    station
}

/// Keeps the station of a `block_on` that has ended for the next one. Takes it out of the list of its pool if
/// it is a worker's or that of a nested call, or if the thread is at its end.
#[inline]
fn retire(station: Arc<Station>) {
    station.idle.set(true);
    let is_kept = station.root().is_some() && executor::place().1 == 0;
    let mut left = Some(station);
    if is_kept {
        left = STATION.try_with(|kept| kept.0.replace(left.take())).unwrap_or(left);
    }
    if left.is_some() {
        clear_up(left);
    }
}

/// Calls `f` with the levels of this thread. `f` runs no user code.
#[inline]
fn levels<R>(f: impl FnOnce(&mut Vec<Level>) -> R) -> R {
    WITHIN.with(|levels| f(&mut levels.borrow_mut()))
}

/// Removes the innermost level that `is_wanted`. The caller drops it, perhaps with its pool, outside of
/// [`levels`].
#[inline]
fn leave(is_wanted: impl Fn(&Level) -> bool) -> Option<Level> {
    levels(|levels| match levels.iter().rposition(is_wanted)? {
        at if at + 1 == levels.len() => levels.pop(),
        at => Some(levels.remove(at)),
    })
}

impl Level {
    fn pool(&self) -> Option<&Arc<Pool>> {
        match self {
            Self::BlockOn(_, pool) => pool.as_ref(),
            Self::Visit(pool) | Self::Entered(pool) => Some(pool),
        }
    }
}

/// Calls `f` with the innermost pool that this thread is in or has entered by hand. Returns `None` if there
/// is none. `f` runs no user code.
#[inline]
pub(crate) fn with_current_pool<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    WITHIN.with(|levels| levels.borrow().iter().rev().find_map(Level::pool).map(f))
}

/// Returns the pool in which a `block_on` here would be: the innermost one, if a `block_on` is in it or if it
/// was entered by hand. Otherwise returns `None`: the pools of hooks and of closures that block do not count,
/// because the pool calls these outside of its threads' `block_on`s.
#[inline]
pub(super) fn pool_of_block_on() -> Option<Arc<Pool>> {
    levels(|levels| {
        let level = levels.iter().rev().find(|level| level.pool().is_some())?;
        if matches!(level, Level::Visit(_)) { None } else { level.pool().cloned() }
    })
}

/// Returns the innermost `block_on` of this thread, below visits and entries, with its pool.
#[inline]
fn innermost() -> Option<(Arc<Station>, Option<Arc<Pool>>)> {
    // The thread is in neither a `block_on` nor a visit, as it mostly is when it begins one.
    if executor::place().1 == 0 {
        return None;
    }
    levels(|levels| {
        levels.iter().rev().find_map(|level| match level {
            Level::BlockOn(station, pool) => Some((station.clone(), pool.clone())),
            _ => None,
        })
    })
}

/// Returns whether the future of this thread's innermost `block_on` was woken.
pub(super) fn is_woken() -> bool {
    innermost().is_some_and(|(station, _)| station.is_woken())
}

/// Calls a hook of the program, which does not unwind, as a piece of work of this thread's innermost
/// `block_on`: the deputy notices if it blocks.
pub(super) fn call_hook(hook: impl FnOnce()) {
    if let Some((station, _)) = innermost() {
        station.in_hook.set(true);
        station.stage.toggle_work();
        hook();
        station.stage.toggle_work();
        station.in_hook.set(false);
    }
}

/// Runs `code`, which polls tasks of the pool and does not unwind, and returns its result. If a task of that
/// pool waits below on this stack, the depth is limited: at most [`DEEPEST`] levels may be on top of one
/// another, and a level may begin only if it is less than half of `stack_size` away from the first level. The
/// other half is for the tasks themselves.
///
/// # Panics
///
/// Panics if the tasks are nested too deeply. The panic is that of the waiting task, and affects no other.
pub(super) fn poll_deeper<R>(pool: &Arc<Pool>, stack_size: usize, code: impl FnOnce() -> R) -> R {
    let works = |level: &Level| matches!(level, Level::BlockOn(station, _) if station.works_for(pool));
    if !levels(|levels| levels.iter().any(works)) {
        return code();
    }
    let marker = 0u8;
    let here = (&raw const marker).addr();
    let before @ (depth, first) = DEPTH.get();
    let first = if depth == 0 { here } else { first };
    assert!(
        depth < DEEPEST && first.abs_diff(here) < stack_size / 2,
        "`block_on` is nested {depth} tasks deep on one thread, because a runtime of the current thread has no other \
         one: await instead of blocking, or build a runtime with workers"
    );
    DEPTH.set((depth + 1, first));
    let result = code();
    DEPTH.set(before);
    result
}

/// A `block_on` or visit in progress. The drop leaves it in the order of the fields. Wakers may be called, so
/// the thread must not lead; the future was dropped before.
pub(crate) struct Stay {
    /// The station of a `block_on`, which its level keeps; null for a visit.
    station: *const Station,
    lead: HereGuard,
    _host: HostGuard,
    _level: LevelGuard,
    _ambient: Ambient,
}

/// Keeps a level that was not entered by hand. Those are left in reverse order.
struct LevelGuard {
    /// The `block_on` below has to rejoin its pool's leadership when this one ends.
    resumes: bool,
}

impl Stay {
    /// Begins a `block_on`, in no pool yet. If another one is below, this suspends it, and hands the tasks
    /// that wait there to other threads.
    #[inline]
    pub(crate) fn begin(station: Arc<Station>) -> Self {
        let resumes = innermost().is_some_and(|(below, pool)| below.suspend(pool.as_ref()));
        let host = HostGuard::enter(Arc::as_ptr(&station).cast(), Some(&*station));
        Self::enter(Level::BlockOn(station, None), host, resumes)
    }

    /// Begins a visit. Free functions act on that pool meanwhile.
    pub(super) fn visit(pool: &Arc<Pool>) -> Self {
        Self::enter(Level::Visit(pool.clone()), HostGuard::enter(ptr::null(), None), false)
    }

    #[inline]
    fn enter(level: Level, _host: HostGuard, resumes: bool) -> Self {
        let station =
            if let Level::BlockOn(station, _) = &level { Arc::as_ptr(station) } else { ptr::null() };
        levels(|levels| levels.push(level));
        let _ambient = ambient::enter();
        Self { station, lead: HereGuard::enter(), _host, _level: LevelGuard { resumes }, _ambient }
    }

    /// Returns the level's reference to the station, to be used while this value exists.
    #[inline]
    fn shared(&self) -> ManuallyDrop<Arc<Station>> {
        assert!(!self.station.is_null(), "a visit has no station");
        // SAFETY: the level has a reference, and is left when this value is dropped. The result is not
        // dropped, so it does not return a reference that it did not take.
        ManuallyDrop::new(unsafe { Arc::from_raw(self.station) })
    }

    /// Returns the station of the `block_on`.
    #[inline]
    pub(crate) fn station(&self) -> &Station {
        // SAFETY: null for a visit; else as in `shared`.
        unsafe { self.station.as_ref() }.expect("a visit has no station")
    }

    /// Returns the waker of the `block_on`'s future, to be used while this value exists.
    #[inline]
    pub(crate) fn waker(&self) -> ManuallyDrop<Waker> {
        ManuallyDrop::new(Waker::from(ManuallyDrop::into_inner(self.shared())))
    }

    /// Joins the pool: from now on its deputy notices if this thread is stuck, and tasks may be left in its
    /// runner. Called once, and not for a visit: panics otherwise. Aborts the child of a fork.
    #[inline]
    pub(crate) fn join(&self, pool: Arc<Pool>) -> &Pool {
        pool.reactor.assert_not_inherited();
        let joined = levels(|levels| {
            let level = levels.iter_mut().rfind(|level| !matches!(level, Level::Entered(_)));
            let Some(Level::BlockOn(_, of @ None)) = level else {
                panic!("a `block_on` joins one pool, and a visit none")
            };
            // SAFETY: as in `shared`.
            ManuallyDrop::new(unsafe { Arc::from_raw(Arc::as_ptr(of.insert(pool))) })
        });
        self.lead.set_leads(Arc::as_ptr(&joined.reactor).cast());
        self.shared().join(&joined);
        // SAFETY: as in `shared`.
        let pool = unsafe { &*Arc::as_ptr(&joined) };
        executor::here(Host::set_watched);
        pool
    }
}

impl Drop for LevelGuard {
    /// Leaves the pool, and resumes the `block_on` below.
    #[inline]
    fn drop(&mut self) {
        let level = leave(|level| !matches!(level, Level::Entered(..)));
        let Some(Level::BlockOn(station, pool)) = level else { return clear_up(None) };
        retire(station);
        if let Some(pool) = pool {
            // Its share may have events that were stolen after the leader had looked for some.
            pool.reactor.offer_unowned();
            pool.deputy.notify();
        }
        if let Some((below, pool)) = innermost() {
            below.resume(pool.as_ref().filter(|_| self.resumes));
            // The deputy did not watch that `block_on` meanwhile, and its thread may sleep next.
            if let Some(pool) = pool {
                pool.deputy.notify();
            }
        }
    }
}

/// A guard: free functions on this thread act on the runtime until it is dropped. See
/// [`Handle::enter`](crate::Handle::enter).
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let runtime = paceline::Runtime::builder().threads(1).build()?;
/// let guard: paceline::EnterGuard = runtime.enter();
/// paceline::block_on(paceline::spawn(async {}));
/// drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "what is entered is left when this is dropped"]
// The pointer, which is only compared, makes the value `!Send`: an entry belongs to its thread.
pub struct EnterGuard(*const Pool);

impl EnterGuard {
    /// Enters `pool`, and keeps it alive.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let entry = Self(Arc::as_ptr(&pool));
        levels(|levels| levels.push(Level::Entered(pool)));
        entry
    }
}

impl Drop for EnterGuard {
    /// Leaves the pool. May drop the last reference to it.
    fn drop(&mut self) {
        drop(leave(|level| matches!(level, Level::Entered(pool) if Arc::as_ptr(pool) == self.0)));
        clear_up(None);
    }
}

// Not for miri, which has no sockets.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::{Duration, Instant};

    use crate::{Async, Runtime, Tuning};

    /// Longer than the test.
    const NEVER: Duration = Duration::from_secs(3600);

    /// LF5: a thread ends with an event in its share, while the leader sleeps, and the deputy does not look.
    /// Fails if that thread does not interrupt the leader.
    #[test]
    fn lf5_a_leader_that_sleeps_steals_what_a_thread_has_left() {
        let tuning = Tuning::default().max_blind(NEVER);
        let runtime = Runtime::builder().threads(1).tuning(tuning).build().unwrap();
        let pool = &runtime.pool;
        let guard = runtime.handle().enter();
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
        while !pool.stations().iter().any(|station| station.seat.is_polling()) {
            thread::yield_now();
        }
        runtime.block_on(async { pool.reactor.shares.join().hold(listener.source()) });
        let begun = Instant::now();
        while runtime.metrics().events_stolen == 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "the event is stolen at once");
            thread::yield_now();
        }
        drop(guard);
    }
}
