//! [`Runner`]: one `run` in progress. A direct slot, a ring for the surplus of its thread, and what others may
//! know about it.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use async_task::Runnable;
use concurrent_queue::ConcurrentQueue;

use super::hosting::{self, Surroundings};
use super::sleepers::Sleeper;
use super::slot::Slot;
use super::state::{State, StateRef};
use crate::sync::{self, AtomicBool, AtomicPtr, AtomicU32, Counter};

/// Tasks that fit into the ring; more go to the injector.
const RING: usize = 256;

/// How tasks came to be polled.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// From the slot: the thread that woke the task polled it next.
    pub(crate) direct: Counter,
    /// From the ring or the injector.
    pub(crate) surplus: Counter,
    /// From another runner.
    pub(crate) stolen: Counter,
}

impl Counters {
    /// Adds what `other` counted so far.
    pub(crate) fn absorb(&self, other: &Counters) {
        self.direct.add_shared(other.direct.get());
        self.surplus.add_shared(other.surplus.get());
        self.stolen.add_shared(other.stolen.get());
    }
}

/// One `run` in progress.
pub(crate) struct Runner {
    state: StateRef,
    pub(super) slot: Slot,
    pub(super) ring: ConcurrentQueue<Runnable>,
    pub(super) sleeper: sync::Arc<Sleeper>,
    /// The future that `run` drives was woken.
    pub(super) root_woken: AtomicBool,
    /// It was woken to look for tasks, wherever they are.
    searches: AtomicBool,
    pub(crate) counters: Counters,
    /// Odd while a task is polled; the deputy compares it with what it was a tick ago.
    pulse: AtomicU32,
    /// Where the task was spawned that is polled, or was last.
    place: AtomicPtr<Location<'static>>,
    /// What that task's waker points to, to compare with.
    task: AtomicPtr<()>,
    /// The deputy found the runner stuck in one task, which is to learn that it is slow.
    caught: AtomicBool,
    /// It has asked to be polled, because it has tasks, and was not polled since.
    asked: AtomicBool,
    /// Who hosts it, or did.
    surroundings: OnceLock<Arc<dyn Surroundings>>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("beat", &self.beat())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// How far a runner has got; equal beats mean no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat(u32);

impl Beat {
    /// Whether a task was being polled.
    pub(crate) fn is_in_task(self) -> bool {
        self.0 % 2 == 1
    }
}

impl Runner {
    pub(super) fn new(state: StateRef) -> Self {
        Self {
            state,
            slot: Slot::new(),
            ring: ConcurrentQueue::bounded(RING),
            sleeper: sync::Arc::new(Sleeper::new(true)),
            root_woken: AtomicBool::new(true),
            searches: AtomicBool::new(true),
            counters: Counters::default(),
            pulse: AtomicU32::new(0),
            place: AtomicPtr::new(ptr::null_mut()),
            task: AtomicPtr::new(ptr::null_mut()),
            caught: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            surroundings: OnceLock::new(),
        }
    }

    #[inline]
    pub(crate) fn is_of(&self, state: *const State) -> bool {
        ptr::eq(&*self.state, state)
    }

    /// Polls one task.
    #[inline]
    pub(super) fn run(&self, task: Runnable) {
        let pulse = self.pulse.load(Relaxed);
        self.pulse.store(pulse.wrapping_add(1), Relaxed);
        task.run();
        self.pulse.store(pulse.wrapping_add(2), Relaxed);
    }

    #[inline]
    pub(super) fn task_begins(&self, place: &'static Location<'static>, waker: &Waker) {
        self.place.store(ptr::from_ref(place).cast_mut(), Relaxed);
        self.task.store(waker.data().cast_mut(), Relaxed);
    }

    /// Whether it is this waker with which the current task is polled.
    pub(super) fn polls_with(&self, waker: &Waker) -> bool {
        ptr::eq(self.task.load(Relaxed), waker.data())
    }

    /// Whether the deputy caught the task that was just polled.
    #[inline]
    pub(super) fn take_caught(&self) -> bool {
        self.caught.load(Relaxed) && self.caught.swap(false, Relaxed)
    }

    /// It is hosted from now on.
    pub(super) fn is_hosted_in(&self, surroundings: &Arc<dyn Surroundings>) {
        let _ = self.surroundings.set(surroundings.clone());
        if self.state.has_company() {
            surroundings.has_company();
        }
    }

    /// Somebody else runs the same executor.
    pub(super) fn has_company(&self) {
        if let Some(surroundings) = self.surroundings.get() {
            surroundings.has_company();
        }
    }

    /// Whether somebody else runs the same executor.
    pub(crate) fn is_in_company(&self) -> bool {
        self.state.has_company()
    }

    /// What the deputy compares from tick to tick.
    pub(crate) fn beat(&self) -> Beat {
        Beat(self.pulse.load(Relaxed))
    }

    /// Where the task was spawned that is being polled.
    pub(crate) fn place(&self) -> Option<&'static Location<'static>> {
        // SAFETY: null, or a `&'static` that `task_begins` stored.
        unsafe { self.place.load(Relaxed).as_ref() }
    }

    /// The deputy found no progress since `beat`: the task is to learn that it is slow.
    pub(crate) fn catch(&self, beat: Beat) {
        self.caught.store(true, Relaxed);
        if self.beat() != beat {
            // It came back meanwhile and may have looked at the mark too early.
            self.caught.store(false, Relaxed);
        }
    }

    /// Whether tasks wait here that its own thread is to poll.
    pub(super) fn has_tasks(&self) -> bool {
        !self.slot.is_empty() || !self.ring.is_empty()
    }

    /// The executor whose tasks it runs.
    pub(crate) fn state(&self) -> &StateRef {
        &self.state
    }

    /// Moves what waits here to where any runner finds it, busy or idle.
    pub(super) fn hand_over(&self) {
        if self.empty() {
            self.state.sleepers.notify();
        }
    }

    /// The same from a thread that must not run anybody's code.
    pub(super) fn hand_over_from_afar(&self) {
        if self.empty() {
            self.state.sleepers.notify_from_afar();
        }
    }

    /// True if something was here.
    fn empty(&self) -> bool {
        let direct = self.slot.take();
        let mut waited = direct.is_some();
        direct.into_iter().for_each(|task| self.state.inject(task));
        while let Ok(task) = self.ring.pop() {
            self.state.inject(task);
            waited = true;
        }
        waited
    }

    /// The thread is about to sleep. False if there are tasks to poll, after all.
    pub(super) fn rest(&self) -> bool {
        if self.asked.load(Relaxed) {
            // It is hosted here, but whoever owns its future does not poll it: it is nobody to be notified, and tasks
            // that this thread left here are for others. It leads, perhaps.
            self.hand_over_from_afar();
            return true;
        }
        self.state.sleepers.rest(&self.sleeper);
        if self.state.has_tasks_for(self) || self.root_woken.load(Relaxed) {
            self.rise();
            self.asked.store(true, Relaxed);
            self.searches.store(true, Relaxed);
            return false;
        }
        true
    }

    /// The thread is awake. Whoever was notified looks for tasks next.
    #[inline]
    pub(super) fn rise(&self) {
        if self.state.sleepers.rise(&self.sleeper) {
            self.searches.store(true, Relaxed);
        }
    }

    /// Whether the runner should look into other runners; it will not again until it is told to.
    #[inline]
    pub(super) fn stops_searching(&self) -> bool {
        self.searches.load(Relaxed) && self.searches.swap(false, Relaxed)
    }

    /// From now on no task gets in, and what is here goes to the injector.
    pub(super) fn close(&self) {
        let direct = self.slot.close();
        self.ring.close();
        let waited = direct.is_some();
        direct.into_iter().for_each(|task| self.state.inject(task));
        if self.empty() || waited {
            self.state.sleepers.notify();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    /// It is polled.
    #[inline]
    pub(super) fn is_polled(&self) {
        if self.asked.load(Relaxed) {
            self.asked.store(false, Relaxed);
        }
    }
}

/// As a waker, a runner wakes the future that `run` drives: only that, so that a task woken on this thread does not
/// make the future be polled in vain.
impl Wake for Runner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.root_woken.store(true, std::sync::atomic::Ordering::Release);
        // On this thread and being polled: `run` looks at the flag between two tasks.
        let polled_here =
            hosting::with_running(|runner| runner.is_some_and(|runner| ptr::eq(runner, &**self)));
        if !polled_here {
            self.sleeper.wake();
        }
    }
}
