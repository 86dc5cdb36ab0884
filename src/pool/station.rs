//! [`Station`]: one `block_on` in progress, as its waker and as the deputy sees it.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use super::Pool;
use crate::executor::{Runner, hosting::Surroundings};
use crate::leadership::{Rouse, Seat};
use crate::reactor::{self, Reactor};
use crate::sync::{self, Mutex};

/// One `block_on`.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) seat: sync::Arc<Seat>,
    /// The root future was woken on the station's own thread, which is therefore awake: no locked instruction.
    woken_here: AtomicBool,
    pool: OnceLock<Arc<Pool>>,
    /// How long the thread waits when nobody needs it; for ever, if it is no replacement.
    pub(crate) linger: Option<Duration>,
    /// The thread may go: those that it stood in for are back.
    released: AtomicBool,
    /// The runners that this thread hosts, for the deputy.
    pub(super) runners: Mutex<Vec<Arc<Runner>>>,
    pub(super) thread: thread::Thread,
}

thread_local! {
    /// The innermost station of this thread, as an address to compare with.
    static HERE: Cell<*const Station> = const { Cell::new(ptr::null()) };
    /// The pools of this thread's stations, innermost last.
    static POOLS: RefCell<Vec<Option<Arc<Pool>>>> = const { RefCell::new(Vec::new()) };
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
        self.pool.set(pool.clone()).expect("a station belongs to one pool");
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
            if let Some(pool) = self.pool.get() {
                pool.reactor.interrupt();
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
        POOLS.with_borrow_mut(|pools| pools.push(None));
        Self { before: HERE.replace(Arc::as_ptr(station)), led_before: reactor::lead_here(ptr::null()) }
    }

    /// The station got its pool.
    pub(crate) fn in_pool(&self, pool: &Arc<Pool>) {
        POOLS.with_borrow_mut(|pools| *pools.last_mut().expect("this station's") = Some(pool.clone()));
        reactor::lead_here(&*pool.reactor);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        HERE.set(self.before);
        reactor::lead_here(self.led_before);
        let pool = POOLS.with_borrow_mut(Vec::pop);
        drop(pool);
    }
}

/// Shows `f` the pool of the innermost station of this thread that has one.
#[inline]
pub(super) fn with_current_pool<R>(f: impl FnOnce(&Arc<Pool>) -> R) -> Option<R> {
    POOLS.try_with(|pools| pools.borrow().iter().rev().flatten().next().map(f)).ok().flatten()
}

/// Whether this thread's innermost station belongs to `pool`, so that it will lead there.
pub(super) fn leads_in(pool: &Pool) -> bool {
    let last = |pools: &RefCell<Vec<Option<Arc<Pool>>>>| match pools.borrow().last() {
        Some(Some(own)) => ptr::eq(&**own, pool),
        // Not in a pool yet: it joins the default one as soon as it has to wait.
        Some(None) => pool.is_default(),
        None => false,
    };
    POOLS.try_with(last).unwrap_or(false)
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
    }

    fn cover(&self) {
        if let Some(pool) = self.pool.get() {
            pool.cover_for_slow_task();
        }
    }
}
