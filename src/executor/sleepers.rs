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

use crate::sync::{self, Arc, AtomicBool, AtomicU8, AtomicUsize, Mutex, Ordering, thread};
use crate::waking;

const AWAKE: u8 = 0;
const IDLE: u8 = 1;
const NOTIFIED: u8 = 2;

/// One that may sleep.
#[derive(Debug)]
pub(super) struct Sleeper {
    state: AtomicU8,
    /// It is hosted: its thread sleeps nowhere but in our own `block_on`, and comes when it is woken.
    hosted: AtomicBool,
    waker: Mutex<Option<Arc<Waker>>>,
}

impl Sleeper {
    /// One that has not slept yet. `hosted` is what it counts as until it has a waker.
    pub(super) fn new(hosted: bool) -> Self {
        Self { state: AtomicU8::new(AWAKE), hosted: AtomicBool::new(hosted), waker: Mutex::new(None) }
    }

    /// Who is woken; and whether it is to be relied on.
    pub(super) fn set_waker(&self, waker: &Waker, hosted: bool) {
        self.hosted.store(hosted, Ordering::Relaxed);
        // Somebody else's code, which may do anything: not under the lock (LF3).
        let new = Arc::new(waker.clone());
        let old = sync::lock(&self.waker).replace(new);
        drop(old);
    }

    pub(super) fn wake(&self) {
        let waker = sync::lock(&self.waker).clone();
        waking::call(move || {
            waker.iter().for_each(|waker| waker.wake_by_ref());
            drop(waker);
        });
    }

    /// The same from a thread that must not run anybody's code, because it leads or watches: a stranger's waker is called on
    /// a thread of its own. False if none is to be had.
    fn wake_from_afar(sleeper: &Arc<Self>) -> bool {
        if sleeper.hosted.load(Ordering::Relaxed) {
            // Our own code: a seat, or a runner's flag.
            sleeper.wake();
            return true;
        }
        let sleeper = sleeper.clone();
        let errand = thread::Builder::new().name("paceline-errand".into());
        errand.spawn(move || sleeper.wake()).is_ok()
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

    /// Returns how many there are now.
    pub(super) fn join(&self, sleeper: Arc<Sleeper>) -> usize {
        let mut all = sync::lock(&self.all);
        all.push(sleeper);
        all.len()
    }

    /// How many there are, asleep or not.
    pub(super) fn count(&self) -> usize {
        sync::lock(&self.all).len()
    }

    /// Whether one of them is not sure to come when it is woken.
    pub(super) fn any_stranger(&self) -> bool {
        sync::lock(&self.all).iter().any(|sleeper| !sleeper.hosted.load(Ordering::Relaxed))
    }

    /// Whether all of them sleep, and none was notified.
    #[cfg(all(test, paceline_shuttle))]
    pub(super) fn all_idle(&self) -> bool {
        sync::lock(&self.all).iter().all(|sleeper| sleeper.state.load(Ordering::Relaxed) == IDLE)
    }

    /// Whether any of them sleeps and was not notified.
    pub(super) fn any_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
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
        if let Some(sleeper) = self.choose_first() {
            sleeper.wake();
        }
    }

    /// The same as [`notify`](Self::notify) from a thread that must not run anybody's code.
    pub(super) fn notify_from_afar(&self) {
        sync::full_fence();
        let chosen = self.choose_first();
        self.wake_from_afar(chosen);
    }

    /// The deputy found that tasks wait although somebody was notified, perhaps: the next one is.
    pub(super) fn notify_another(&self) {
        let chosen = self.choose(|_| true);
        self.wake_from_afar(chosen);
    }

    fn wake_from_afar(&self, chosen: Option<Arc<Sleeper>>) {
        let Some(sleeper) = chosen else { return };
        let notified = Sleeper::wake_from_afar(&sleeper);
        let take_back =
            || sleeper.state.compare_exchange(NOTIFIED, IDLE, Ordering::AcqRel, Ordering::Relaxed);
        if !notified && take_back().is_ok() {
            // The next look tries again.
            self.idle.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Chooses one that is idle, unless somebody is on the way.
    fn choose_first(&self) -> Option<Arc<Sleeper>> {
        let nobody_comes = |all: &Self| !all.on_the_way.load(Ordering::Relaxed);
        if nobody_comes(self) { self.choose(nobody_comes) } else { None }
    }

    /// Chooses one that is idle, if `wanted` still says so under the lock: one that is sure to come, if there is one.
    fn choose(&self, wanted: impl FnOnce(&Self) -> bool) -> Option<Arc<Sleeper>> {
        let sleeper = {
            let all = sync::lock(&self.all);
            if !wanted(self) {
                return None;
            }
            let take = |sleeper: &&Arc<Sleeper>| {
                let state = &sleeper.state;
                state.compare_exchange(IDLE, NOTIFIED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            let hosted = |sleeper: &&Arc<Sleeper>| sleeper.hosted.load(Ordering::Relaxed);
            let sure = all.iter().rev().filter(hosted).find(take);
            let sleeper = sure.or_else(|| all.iter().rev().find(take)).cloned()?;
            // Under the lock and only for somebody: the flag never stands for a look that finds nobody (L8).
            self.on_the_way.store(true, Ordering::Relaxed);
            sleeper
        };
        self.idle.fetch_sub(1, Ordering::Relaxed);
        Some(sleeper)
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
