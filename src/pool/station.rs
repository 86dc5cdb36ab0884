//! [`Station`]: one `block_on` in progress, as its waker and as the deputy sees it.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::thread_state::ThreadState;
use super::{Deputy, Pool};
use crate::executor::{Runner, hosting::Surroundings};
use crate::leadership::{Rank, Rouse, Seat};
use crate::reactor::{self, Reactor};
use crate::sync::{self, AtomicBool, AtomicU8, AtomicU32, Mutex, thread, thread_local};

/// One `block_on`.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) seat: sync::Arc<Seat>,
    /// The root future was woken on the station's own thread, which is therefore awake: no locked instruction.
    woken_here: AtomicBool,
    /// Where it is: not a reference to the pool, because a waker that is left anywhere would keep that alive.
    pool: OnceLock<(Arc<Reactor>, Weak<Pool>, Arc<Deputy>)>,
    /// A nested `block_on` on the same thread does the waiting.
    suspended: AtomicBool,
    /// It is a member of its pool.
    joined: AtomicBool,
    /// It is nested in a task of this pool's own executor, and may be asked to run others.
    helps: OnceLock<Weak<Pool>>,
    /// Odd while its thread fires an event; the deputy compares it with what it was a tick ago.
    pulse: AtomicU32,
    /// What it counts as where no runner is hosted here.
    own_rank: Rank,
    /// What it counts as.
    rank: AtomicU8,
    /// How long the thread waits when nobody needs it; for ever, if it is there for its own future.
    pub(crate) linger: Option<Duration>,
    /// What the deputy wants of it: `GO`, `HELP`.
    orders: AtomicU8,
    /// The runners that this thread hosts, for the deputy.
    pub(super) runners: Mutex<Vec<Arc<Runner>>>,
    pub(super) thread: thread::Thread,
    state: ThreadState,
}

/// A station of a thread, and the pool that it is in; or a pool alone, which the thread visits.
type Stop = (Option<Arc<Station>>, Option<Arc<Pool>>);

thread_local! {
    /// The innermost station of this thread, as an address to compare with.
    static HERE: Cell<*const Station> = const { Cell::new(ptr::null()) };
    /// This thread's stations and visits, and the pools that they are in, innermost last.
    static STACK: RefCell<Vec<Stop>> = const { RefCell::new(Vec::new()) };
}

/// The thread may go: those that it stood in for are back.
const GO: u8 = 1;
/// Nobody else can run the tasks that wait: it is to do so while it waits itself.
const HELP: u8 = 2;

/// What the deputy wants of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Order {
    /// To leave.
    Go,
    /// To run tasks while it waits.
    Help,
}

impl Station {
    pub(crate) fn new() -> Self {
        Self::with(Rank::Guest, None)
    }

    /// A station that is left when nobody needs it for as long as `linger`.
    pub(crate) fn lingering(linger: Option<Duration>) -> Self {
        Self::with(Rank::Guest, linger)
    }

    /// The same for a thread that is here only to lead.
    pub(super) fn relief(linger: Duration) -> Self {
        Self::with(Rank::Relief, Some(linger))
    }

    fn with(own_rank: Rank, linger: Option<Duration>) -> Self {
        Self {
            seat: sync::Arc::new(Seat::new()),
            woken_here: AtomicBool::new(true),
            pool: OnceLock::new(),
            suspended: AtomicBool::new(false),
            joined: AtomicBool::new(false),
            helps: OnceLock::new(),
            pulse: AtomicU32::new(0),
            own_rank,
            rank: AtomicU8::new(own_rank as u8),
            linger,
            orders: AtomicU8::new(0),
            runners: Mutex::new(Vec::new()),
            thread: thread::current(),
            state: ThreadState::here(),
        }
    }

    /// Whether the root future was woken.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken_here.load(Relaxed) || self.seat.root_woken()
    }

    /// Consumes all wake-ups of the root future.
    #[inline]
    pub(crate) fn take_woken(&self) -> bool {
        let here = self.woken_here.load(Relaxed);
        if here {
            self.woken_here.store(false, Relaxed);
        }
        self.seat.take_root() || here
    }

    /// What it counts as, whether or not it hosts a runner.
    #[inline]
    pub(crate) fn rank_as(&self, is_host: bool) -> Rank {
        let rank = if is_host { Rank::Host } else { self.own_rank };
        self.rank.store(rank as u8, Relaxed);
        rank
    }

    fn rank(&self) -> Rank {
        if self.rank.load(Relaxed) == Rank::Host as u8 { Rank::Host } else { self.own_rank }
    }

    /// Whether it stands in for a worker that is stuck.
    pub(super) fn is_replacement(&self) -> bool {
        self.linger.is_some() && !self.is_relief()
    }

    /// Whether it is here only to lead.
    pub(super) fn is_relief(&self) -> bool {
        self.own_rank == Rank::Relief
    }

    /// Lets a replacement go, even if it leads: somebody else will.
    pub(super) fn release(self: &Arc<Self>) {
        self.orders.fetch_or(GO, Relaxed);
        self.wake_by_ref();
    }

    /// If the thread sleeps here, has it run tasks while it waits.
    pub(super) fn ask_for_help(self: &Arc<Self>) -> bool {
        let sleeps = self.seat.is_asleep();
        if sleeps {
            self.orders.fetch_or(HELP, Relaxed);
            self.wake_by_ref();
        }
        sleeps
    }

    /// What the deputy wants.
    #[inline]
    pub(crate) fn order(&self) -> Option<Order> {
        if self.orders.load(Relaxed) == 0 { None } else { self.take_order() }
    }

    #[cold]
    fn take_order(&self) -> Option<Order> {
        if self.orders.load(Relaxed) & GO != 0 {
            return Some(Order::Go);
        }
        let asked = self.orders.fetch_and(!HELP, Relaxed) & HELP != 0;
        asked.then_some(Order::Help)
    }

    /// The pool in one of whose own tasks it is nested.
    pub(crate) fn helps(&self) -> Option<Arc<Pool>> {
        self.helps.get().and_then(Weak::upgrade)
    }

    /// Whether its thread is here, and in no other `block_on` on top.
    pub(super) fn is_on_top(&self) -> bool {
        !self.suspended.load(Relaxed)
    }

    /// The thread begins to fire an event, or has fired it.
    #[inline]
    pub(crate) fn fires(&self) {
        // A plain load and store: nobody else writes it.
        self.pulse.store(self.pulse.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// How many events it has fired, twice; one more while it fires one.
    pub(super) fn pulse(&self) -> u32 {
        self.pulse.load(Relaxed)
    }

    /// It is a member of its pool from now on, or has left.
    pub(super) fn joins(&self, joined: bool) {
        self.joined.store(joined, Relaxed);
    }

    /// Whether it hosts a runner of an executor that somebody else runs as well.
    pub(super) fn is_in_company(&self) -> bool {
        sync::lock(&self.runners).iter().any(|runner| runner.is_in_company())
    }

    /// Whether its thread runs, as opposed to one that blocks.
    pub(super) fn runs(&self) -> bool {
        self.state.is_running()
    }

    /// Whether it hosts a runner of an executor in which somebody sleeps beside tasks that wait.
    pub(super) fn sleeps_beside_tasks(&self) -> bool {
        sync::lock(&self.runners).iter().any(|runner| runner.state().is_open())
    }

    /// Whether it hosts a runner of the pool's own executor.
    fn works_for(&self, pool: &Pool) -> bool {
        let Some(crew) = pool.crew() else { return false };
        sync::lock(&self.runners).iter().any(|runner| runner.is_of(&**crew.state()))
    }

    pub(super) fn attach(&self, pool: &Arc<Pool>) {
        let place = (pool.reactor.clone(), Arc::downgrade(pool), pool.deputy.clone());
        self.pool.set(place).expect("a station belongs to one pool");
    }

    /// Whether nothing happens here that the deputy would have to watch.
    pub(super) fn is_quiet(&self) -> bool {
        self.suspended.load(Relaxed) || self.seat.is_asleep()
    }
}

impl Wake for Station {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        if HERE.try_with(|here| ptr::eq(here.get(), Arc::as_ptr(self))).unwrap_or(false) {
            self.woken_here.store(true, Relaxed);
        } else if self.seat.wake_root() == Rouse::Interrupt {
            if let Some((reactor, ..)) = self.pool.get() {
                reactor.interrupt();
            }
        }
    }
}

/// The thread is at a station; dropping the value leaves it.
#[derive(Debug)]
pub(crate) struct Presence {
    before: *const Station,
    led_before: *const Reactor,
}

impl Presence {
    pub(crate) fn new(station: &Arc<Station>) -> Self {
        STACK.with_borrow_mut(|stack| {
            let _ = suspend_innermost(stack, true);
            stack.push((Some(station.clone()), None));
        });
        Self { before: HERE.replace(Arc::as_ptr(station)), led_before: reactor::lead_here(ptr::null()) }
    }

    /// The station got its pool.
    pub(crate) fn in_pool(&self, pool: &Arc<Pool>) {
        let helper = STACK.with_borrow_mut(|stack| {
            let ((innermost, place), below) = stack.split_last_mut().expect("this station");
            *place = Some(pool.clone());
            let works = |stop: &Stop| {
                let (station, pool) = (stop.0.as_ref()?, stop.1.as_ref()?);
                station.works_for(pool).then(|| pool.clone())
            };
            Some((innermost.clone()?, below.iter().rev().find_map(works)?))
        });
        if let Some((station, blocked)) = helper {
            let _ = station.helps.set(Arc::downgrade(&blocked));
            blocked.gets_helper(station);
        }
        reactor::lead_here(&*pool.reactor);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        HERE.set(self.before);
        reactor::lead_here(self.led_before);
        let (gone, below) = STACK.with_borrow_mut(|stack| (stack.pop(), suspend_innermost(stack, false)));
        // Nobody has looked at the one below meanwhile, and it may sleep next.
        below.iter().filter(|pool| !pool.is_inherited()).for_each(|pool| pool.has_risen());
        if let Some((Some(station), _)) = &gone {
            station
                .helps()
                .iter()
                .filter(|pool| !pool.is_inherited())
                .for_each(|pool| pool.loses_helper(station));
        }
        drop(gone);
    }
}

/// Says of the innermost station whether another one on top of it does the waiting: then its thread is no host of its
/// pool, whatever its rank, because it will not come back to lead before the other one is done. Returns its pool.
fn suspend_innermost(stack: &[Stop], suspended: bool) -> Option<Arc<Pool>> {
    let mut stations = stack.iter().rev().filter_map(|(station, pool)| Some((station.as_ref()?, pool)));
    let (station, pool) = stations.next()?;
    station.suspended.store(suspended, Relaxed);
    // Not one that has left already, and whose future is being dropped.
    let pool = pool.as_ref().filter(|_| station.joined.load(Relaxed))?;
    // Its own `block_on`, which sets the rank, is suspended: it is the same at both ends.
    pool.leadership.suspend(station.rank(), suspended);
    Some(pool.clone())
}

/// The thread is called by a pool outside of any `block_on`: in a hook, or to drop a future. Free functions act on that
/// pool until the value is dropped.
#[derive(Debug)]
pub(super) struct Visit {
    /// Not where the thread's locals are gone: there is no more to say where it is.
    begun: bool,
}

impl Visit {
    pub(super) fn new(pool: &Arc<Pool>) -> Self {
        let stop = (None, Some(pool.clone()));
        Self { begun: STACK.try_with(|stack| stack.borrow_mut().push(stop)).is_ok() }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.begun {
            drop(STACK.with_borrow_mut(Vec::pop));
        }
    }
}

/// Shows `f` the pool of the innermost station or visit of this thread that has one, unless it is another process's.
#[inline]
pub(super) fn with_current_pool<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    let innermost = |stack: &RefCell<Vec<Stop>>| {
        let stack = stack.borrow();
        let pool = stack.iter().rev().find_map(|(_, pool)| pool.as_ref());
        pool.filter(|pool| !pool.is_inherited()).map(f)
    };
    STACK.try_with(innermost).ok().flatten()
}

impl Surroundings for Station {
    fn hosts(&self, runner: &Arc<Runner>) {
        sync::lock(&self.runners).push(runner.clone());
    }

    fn has_company(&self) {
        if let Some((_, _, deputy)) = self.pool.get() {
            // Where no thread is to be had, the next one who comes by tries again.
            let _ = deputy.call();
        }
    }

    fn is_root(&self, waker: &Waker) -> bool {
        // A waker made of an `Arc` carries the address of what is in it.
        ptr::eq(waker.data(), ptr::from_ref(self).cast())
    }

    fn forgets(&self, runner: &Arc<Runner>) {
        sync::lock(&self.runners).retain(|other| !Arc::ptr_eq(other, runner));
        if let Some(pool) = self.pool.get().and_then(|(_, pool, _)| pool.upgrade()) {
            pool.past_polls.absorb(&runner.counters);
        }
    }

    fn cover(&self) {
        if let Some(pool) = self.pool.get().and_then(|(_, pool, _)| pool.upgrade()) {
            pool.cover_for_slow_task();
        }
    }
}
