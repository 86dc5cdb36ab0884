//! Who of an executor's runners and tickers sleeps, and waking one of them when tasks become surplus.
//!
//! | state of a sleeper | meaning | next |
//! |---|---|---|
//! | `AWAKE` | it will look for tasks before it sleeps | [`rest`](Sleepers::rest) |
//! | `IDLE` | it sleeps, or is about to | [`rise`](Sleepers::rise), [`notify`](Sleepers::notify) |
//! | `NOTIFIED` | it was woken and has not noticed | `rise` |
//!
//! No task is lost between the two sides (N2). Who schedules: makes the task visible, fence, looks for sleepers.
//! Who rests: says that it is idle, fence, looks for tasks. Of two fences one is first, so at least one of the two
//! sees the other. And at most one notified sleeper is on its way: who finds one leaves it at that, because that
//! one clears the flag, fence, looks for tasks, and notifies the next if there are more.

use std::task::Waker;

use crate::sync::{self, Arc, AtomicBool, AtomicU8, AtomicUsize, Mutex, Ordering};

const AWAKE: u8 = 0;
const IDLE: u8 = 1;
const NOTIFIED: u8 = 2;

/// One that may sleep.
#[derive(Debug)]
pub(super) struct Sleeper {
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    pub(super) fn new() -> Self {
        Self { state: AtomicU8::new(AWAKE), waker: Mutex::new(None) }
    }

    pub(super) fn set_waker(&self, waker: &Waker) {
        let old = sync::lock(&self.waker).replace(waker.clone());
        drop(old);
    }

    pub(super) fn wake(&self) {
        let waker = sync::lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// All of one executor.
#[derive(Debug)]
pub(super) struct Sleepers {
    /// How many are idle and not notified; saves the lock.
    idle: AtomicUsize,
    on_the_way: AtomicBool,
    all: Mutex<Vec<Arc<Sleeper>>>,
}

impl Sleepers {
    pub(super) fn new() -> Self {
        Self { idle: AtomicUsize::new(0), on_the_way: AtomicBool::new(false), all: Mutex::new(Vec::new()) }
    }

    pub(super) fn join(&self, sleeper: Arc<Sleeper>) {
        sync::lock(&self.all).push(sleeper);
    }

    /// `sleeper` is gone. If it was notified and did not notice, somebody else has to be.
    pub(super) fn leave(&self, sleeper: &Arc<Sleeper>) {
        sync::lock(&self.all).retain(|other| !Arc::ptr_eq(other, sleeper));
        if self.rise(sleeper) {
            self.notify();
        }
    }

    /// `sleeper` is about to sleep: its caller looks for tasks once more after this.
    #[inline]
    pub(super) fn rest(&self, sleeper: &Sleeper) {
        sleeper.state.store(IDLE, Ordering::Relaxed);
        self.idle.fetch_add(1, Ordering::Relaxed);
        // ORDER: pairs with the fence in `notify`.
        sync::full_fence();
    }

    /// `sleeper` is awake. True if it was notified: then its caller looks for tasks after this.
    #[inline]
    pub(super) fn rise(&self, sleeper: &Sleeper) -> bool {
        if sleeper.state.load(Ordering::Relaxed) == AWAKE {
            return false;
        }
        match sleeper.state.swap(AWAKE, Ordering::AcqRel) {
            IDLE => {
                self.idle.fetch_sub(1, Ordering::Relaxed);
                false
            }
            NOTIFIED => {
                // Under the lock, where the flag is set after the state: else it could be set after this, for ever.
                let all = sync::lock(&self.all);
                self.on_the_way.store(false, Ordering::Relaxed);
                drop(all);
                // ORDER: pairs with the fence in `notify`.
                sync::full_fence();
                true
            }
            _ => false,
        }
    }

    /// The same for tasks that the caller's own runner will poll if nobody else does: without the fence. A sleeper that
    /// goes to sleep at this very moment may be missed, which costs some parallelism and no task.
    #[inline]
    pub(super) fn invite(&self) {
        if self.idle.load(Ordering::Relaxed) > 0 {
            self.notify_one();
        }
    }

    /// Wakes one sleeper, if there is one and none is on its way. Call it after a task became visible. False if there
    /// is none.
    #[inline]
    pub(super) fn notify(&self) -> bool {
        // ORDER: pairs with the fences in `rest` and `rise`.
        sync::full_fence();
        let any = self.idle.load(Ordering::Relaxed) > 0;
        if any {
            self.notify_one();
        }
        any
    }

    #[cold]
    fn notify_one(&self) {
        let one_is_enough = || self.on_the_way.load(Ordering::Relaxed);
        if one_is_enough() {
            return;
        }
        let sleeper = {
            let all = sync::lock(&self.all);
            if one_is_enough() {
                return;
            }
            let idle = |sleeper: &&Arc<Sleeper>| {
                let state = &sleeper.state;
                state.compare_exchange(IDLE, NOTIFIED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            let Some(sleeper) = all.iter().rev().find(idle).cloned() else { return };
            // Under the lock and only for somebody: the flag never stands for a look that finds nobody (L8).
            self.on_the_way.store(true, Ordering::Relaxed);
            sleeper
        };
        self.idle.fetch_sub(1, Ordering::Relaxed);
        sleeper.wake();
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
