//! [`Station`]: one `block_on` in progress, as its waker and as the deputy sees it.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::Pool;
use crate::executor::{Runner, hosting::Surroundings};
use crate::leadership::{Rouse, Seat};
use crate::reactor::{self, Reactor};
use crate::sync::{self, AtomicBool, Mutex, thread, thread_local};

/// One `block_on`.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) seat: sync::Arc<Seat>,
    /// The root future was woken on the station's own thread, which is therefore awake: no locked instruction.
    woken_here: AtomicBool,
    /// Where it is: not a reference to the pool, because a waker that is left anywhere would keep that alive.
    pool: OnceLock<(Arc<Reactor>, Weak<Pool>)>,
    /// A nested `block_on` on the same thread does the waiting.
    suspended: AtomicBool,
    /// Somebody waits who counts on it to join its pool.
    relied_on: AtomicBool,
    /// It counts as a host of its pool.
    is_host: AtomicBool,
    /// How long the thread waits when nobody needs it; for ever, if it is no replacement.
    pub(crate) linger: Option<Duration>,
    /// The thread may go: those that it stood in for are back.
    released: AtomicBool,
    /// The runners that this thread hosts, for the deputy.
    pub(super) runners: Mutex<Vec<Arc<Runner>>>,
    pub(super) thread: thread::Thread,
}

/// A station of a thread, and the pool that it is in; or a pool alone, which the thread visits.
type Stop = (Option<Arc<Station>>, Option<Arc<Pool>>);

thread_local! {
    /// The innermost station of this thread, as an address to compare with.
    static HERE: Cell<*const Station> = const { Cell::new(ptr::null()) };
    /// This thread's stations and visits, and the pools that they are in, innermost last.
    static STACK: RefCell<Vec<Stop>> = const { RefCell::new(Vec::new()) };
}

impl Station {
    pub(crate) fn new() -> Self {
        Self::lingering(None)
    }

    /// A station that is left when nobody needs it for as long as `linger`.
    pub(crate) fn lingering(linger: Option<Duration>) -> Self {
        Self {
            seat: sync::Arc::new(Seat::new()),
            woken_here: AtomicBool::new(true),
            pool: OnceLock::new(),
            suspended: AtomicBool::new(false),
            relied_on: AtomicBool::new(false),
            is_host: AtomicBool::new(false),
            linger,
            released: AtomicBool::new(false),
            runners: Mutex::new(Vec::new()),
            thread: thread::current(),
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

    /// Says whether it counts as a host.
    #[inline]
    pub(crate) fn set_host(&self, is_host: bool) {
        self.is_host.store(is_host, Relaxed);
    }

    /// Lets a replacement go, even if it leads: somebody else will.
    pub(super) fn release(self: &Arc<Self>) {
        if self.linger.is_some() {
            self.released.store(true, Relaxed);
            self.wake_by_ref();
        }
    }

    #[inline]
    pub(crate) fn is_released(&self) -> bool {
        self.released.load(Relaxed)
    }

    pub(super) fn attach(&self, pool: &Arc<Pool>) {
        let place = (pool.reactor.clone(), Arc::downgrade(pool));
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
            if let Some((reactor, _)) = self.pool.get() {
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
            suspend_innermost(stack, true);
            stack.push((Some(station.clone()), None));
        });
        Self { before: HERE.replace(Arc::as_ptr(station)), led_before: reactor::lead_here(ptr::null()) }
    }

    /// The station got its pool.
    pub(crate) fn in_pool(&self, pool: &Arc<Pool>) {
        STACK.with_borrow_mut(|stack| stack.last_mut().expect("this station").1 = Some(pool.clone()));
        reactor::lead_here(&*pool.reactor);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        HERE.set(self.before);
        reactor::lead_here(self.led_before);
        let gone = STACK.with_borrow_mut(|stack| {
            let gone = stack.pop();
            suspend_innermost(stack, false);
            gone
        });
        let Some((Some(station), pool)) = gone else { return };
        // The future was done before it had to wait, and so before the thread joined a pool.
        let instead = || if station.relied_on.load(Relaxed) { Pool::current().ok() } else { None };
        if let Some(pool) = pool.or_else(instead) {
            pool.was_left();
        }
    }
}

/// Says of the innermost station whether another one on top of it does the waiting: then its thread is no host of its
/// pool, whatever its rank, because it will not come back to lead before the other one is done.
fn suspend_innermost(stack: &[Stop], suspended: bool) {
    let mut stations = stack.iter().rev().filter_map(|(station, pool)| Some((station.as_ref()?, pool)));
    let Some((station, pool)) = stations.next() else { return };
    station.suspended.store(suspended, Relaxed);
    if let Some(pool) = pool {
        // Its own `block_on`, which sets this, is suspended: it is the same at both ends.
        if station.is_host.load(Relaxed) {
            pool.leadership.suspend_host(suspended);
        }
    }
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

/// Whether this thread will lead in `pool` when it has nothing else to do: in its innermost `block_on`, which joins the
/// pool of the one around it, or the default one, as soon as it has to wait. That is relied on from now on.
pub(super) fn will_lead_in(pool: &Pool) -> bool {
    let rely_on_it = |stack: &RefCell<Vec<Stop>>| {
        let stack = stack.borrow();
        // On a visit it may lead nowhere.
        let (Some(station), _) = stack.last()? else { return None };
        station.relied_on.store(true, Relaxed);
        Some(())
    };
    STACK.try_with(rely_on_it).ok().flatten().is_some()
        && with_current_pool(|own| ptr::eq(&**own, pool)).unwrap_or_else(|| pool.is_default())
}

impl Surroundings for Station {
    fn hosts(&self, runner: &Arc<Runner>) {
        sync::lock(&self.runners).push(runner.clone());
    }

    fn is_root(&self, waker: &Waker) -> bool {
        // A waker made of an `Arc` carries the address of what is in it.
        ptr::eq(waker.data(), ptr::from_ref(self).cast())
    }

    fn forgets(&self, runner: &Arc<Runner>) {
        sync::lock(&self.runners).retain(|other| !Arc::ptr_eq(other, runner));
        if let Some(pool) = self.pool.get().and_then(|(_, pool)| pool.upgrade()) {
            pool.past_polls.absorb(&runner.counters);
        }
    }

    fn cover(&self) {
        if let Some(pool) = self.pool.get().and_then(|(_, pool)| pool.upgrade()) {
            pool.cover_for_slow_task();
        }
    }
}
