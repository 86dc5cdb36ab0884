//! [`Runner`]: one `run` in progress. A direct slot, a ring for the surplus of its thread, and what others may
//! know about it.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::task::{Wake, Waker};

use async_task::Runnable;
use concurrent_queue::ConcurrentQueue;

use super::sleeper::Sleeper;
use super::slot::Slot;
use crate::sync::{self, AtomicPtr, Counter, Flag, Ordering::Relaxed};

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
    /// The executor whose tasks it runs, as an address to compare with.
    executor: usize,
    pub(super) slot: Slot,
    pub(super) ring: ConcurrentQueue<Runnable>,
    pub(super) sleeper: sync::Arc<Sleeper>,
    /// It is in the line of those that wait for tasks. Written by who polls it, or hosts it.
    pub(super) rests: Flag,
    /// It has rested since this was asked last.
    pub(super) rested: Flag,
    /// The future that `run` drives was woken.
    pub(super) root_woken: Flag,
    /// It was woken to look for tasks, wherever they are.
    pub(super) searches: Flag,
    /// It is polled with the waker of the future of the frame that hosts it.
    pub(super) is_root: Flag,
    /// It is polled elsewhere now, or no more. Who hosts it, forgets it.
    pub(super) left: Flag,
    /// It has asked to be polled, because it has tasks, and was not polled since.
    pub(super) asked: Flag,
    pub(crate) counters: Counters,
    /// Odd while a task is polled; the deputy compares it with what it was a tick ago.
    pulse: Counter,
    /// Where the task was spawned that is polled, or was last.
    spawned_at: AtomicPtr<Location<'static>>,
    /// What that task's waker points to, to compare with.
    task: AtomicPtr<()>,
    /// The deputy found the runner stuck in one task, which is to learn that it is slow.
    caught: Flag,
    /// It was, and computed.
    computes: Flag,
    /// The deputy wants its thread to look at the reactor before the next task.
    look_up: Flag,
    /// It is there for what events wake, beside threads that compute: see [`is_reserve`](Self::is_reserve).
    reserve: Flag,
    /// As the reserve, it polls a task of the surplus; unless that is one that is left to others, which takes this back.
    pub(super) sifts: Flag,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("beat", &self.beat())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// What a task was at, when it had not come back for a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caught {
    /// It kept its thread from running.
    Blocking,
    /// It ran.
    Computing,
}

/// How far a runner has got; equal beats mean no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat(u64);

impl Beat {
    /// Whether a task was being polled.
    pub(crate) fn is_in_task(self) -> bool {
        self.0 % 2 == 1
    }

    /// How often a poll has begun, and ended.
    pub(crate) fn count(self) -> u64 {
        self.0
    }
}

impl Runner {
    pub(super) fn new(executor: usize) -> Self {
        Self {
            executor,
            slot: Slot::new(),
            ring: ConcurrentQueue::bounded(RING),
            sleeper: sync::Arc::new(Sleeper::new(true)),
            rests: Flag::new(false),
            rested: Flag::new(false),
            root_woken: Flag::new(true),
            searches: Flag::new(true),
            is_root: Flag::new(false),
            left: Flag::new(false),
            asked: Flag::new(false),
            counters: Counters::default(),
            pulse: Counter::default(),
            spawned_at: AtomicPtr::new(ptr::null_mut()),
            task: AtomicPtr::new(ptr::null_mut()),
            caught: Flag::new(false),
            computes: Flag::new(false),
            look_up: Flag::new(false),
            reserve: Flag::new(false),
            sifts: Flag::new(false),
        }
    }

    #[inline]
    pub(super) fn is_of(&self, executor: usize) -> bool {
        self.executor == executor
    }

    /// Polls one task.
    #[inline]
    pub(super) fn run(&self, task: Runnable) {
        // Known again when its future is polled: of one that was cancelled, that is dropped here.
        self.spawned_at.store(ptr::null_mut(), Relaxed);
        self.task.store(ptr::null_mut(), Relaxed);
        self.pulse.add(1);
        task.run();
        self.pulse.add(1);
    }

    #[inline]
    pub(super) fn task_begins(&self, spawned_at: &'static Location<'static>, waker: &Waker) {
        self.spawned_at.store(ptr::from_ref(spawned_at).cast_mut(), Relaxed);
        self.task.store(waker.data().cast_mut(), Relaxed);
    }

    /// Whether it is this waker with which the current task is polled.
    pub(super) fn polls_with(&self, waker: &Waker) -> bool {
        ptr::eq(self.task.load(Relaxed), waker.data())
    }

    /// What the waker of the task points to that is polled, or was last.
    pub(crate) fn task(&self) -> usize {
        self.task.load(Relaxed).addr()
    }

    /// Whether the deputy caught the task that was just polled.
    #[inline]
    pub(super) fn is_caught(&self) -> bool {
        self.caught.is_set()
    }

    /// The same, which is over then; and in what.
    pub(super) fn take_caught(&self) -> Option<Caught> {
        self.caught.take().then(|| if self.computes.is_set() { Caught::Computing } else { Caught::Blocking })
    }

    /// Whether its thread is to look at the reactor before it polls another task.
    pub(super) fn is_to_look_up(&self) -> bool {
        self.look_up.take()
    }

    /// Nobody has looked at the reactor for a tick: its thread is to do so between two tasks. If it is in none, it does so
    /// anyway, and once more.
    pub(crate) fn ask_to_look_up(&self) {
        self.look_up.set(true);
        // This is what it looks at between two tasks. Its future is polled for nothing, which costs less than one more flag.
        self.root_woken.set(true);
    }

    /// Whether it is the reserve: the one runner beside others that compute. It polls what events wake on its own thread, and
    /// leaves the surplus to them, or it would compute as well and nobody would be left who looks at the reactor. Where nobody
    /// takes that, it sifts it for tasks that have shown that they are quick: some were woken by events elsewhere.
    #[inline]
    pub(crate) fn is_reserve(&self) -> bool {
        self.reserve.is_set()
    }

    /// It is the reserve from now on; or one that takes what there is. Its thread may sleep: the caller wakes it after this.
    pub(crate) fn set_reserve(&self, is_reserve: bool) {
        self.reserve.set(is_reserve);
        self.searches.set(true);
    }

    /// Nobody takes the surplus: as the reserve, it is to sift it.
    pub(super) fn ask_to_sift(self: &Arc<Self>) {
        self.searches.set(true);
        self.wake_by_ref();
    }

    /// What the deputy compares from tick to tick.
    pub(crate) fn beat(&self) -> Beat {
        Beat(self.pulse.get())
    }

    /// Where the task was spawned that is being polled.
    pub(crate) fn spawned_at(&self) -> Option<&'static Location<'static>> {
        // SAFETY: null, or a `&'static` that `task_begins` stored.
        unsafe { self.spawned_at.load(Relaxed).as_ref() }
    }

    /// The deputy found no progress since `beat`: the task is to learn that it is slow.
    pub(crate) fn catch(&self, beat: Beat, at: Caught) {
        self.computes.set(at == Caught::Computing);
        self.caught.set(true);
        if self.beat() != beat {
            // It came back meanwhile and may have looked at the mark too early.
            self.caught.set(false);
        }
    }

    /// Whether tasks wait here that its own thread is to poll.
    pub(super) fn has_tasks(&self) -> bool {
        !self.slot.is_empty() || !self.ring.is_empty()
    }

    /// The task that waits here and comes first.
    pub(super) fn pop(&self) -> Option<Runnable> {
        self.slot.take().or_else(|| self.ring.pop().ok())
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A scheduled task that does this.
    fn task(body: impl FnOnce() + Send + 'static) -> Runnable {
        let (runnable, task) = async_task::spawn(async move { body() }, |_| unreachable!("it does not wait"));
        task.detach();
        runnable
    }

    #[test]
    fn a_beat_tells_whether_a_task_is_polled_and_whether_another_was() {
        let runner = Arc::new(Runner::new(7));
        let before = runner.beat();
        let within = Arc::new(Mutex::new(before));
        let look = {
            let (runner, within) = (runner.clone(), within.clone());
            move || *within.lock().unwrap() = runner.beat()
        };
        runner.run(task(look));
        let (within, after) = (*within.lock().unwrap(), runner.beat());
        assert_eq!([before, within, after].map(Beat::is_in_task), [false, true, false]);
        assert_ne!(before, after);
        assert!(format!("{runner:?}").contains(&format!("beat: {after:?}")));
    }

    #[test]
    fn only_a_runner_that_made_no_progress_is_caught_until_it_has_noticed() {
        let runner = Runner::new(7);
        let before = runner.beat();
        runner.run(task(|| ()));
        runner.catch(before, Caught::Blocking);
        assert_eq!((runner.is_caught(), runner.take_caught()), (false, None));
        for at in [Caught::Computing, Caught::Blocking] {
            runner.catch(runner.beat(), at);
            assert!(runner.is_caught() && runner.is_caught());
            assert_eq!(runner.take_caught(), Some(at));
            assert_eq!((runner.is_caught(), runner.take_caught()), (false, None));
        }
    }

    #[test]
    fn a_runner_knows_its_executor_and_the_task_that_began_last() {
        let runner = Runner::new(7);
        assert!(runner.is_of(7) && !runner.is_of(8));
        assert!(runner.spawned_at().is_none());
        let [task, other] = [(); 2].map(|()| {
            let (runnable, task) = async_task::spawn(async {}, |_| ());
            task.detach();
            runnable
        });
        assert!(!runner.polls_with(&task.waker()));
        let here = Location::caller();
        runner.task_begins(here, &task.waker());
        assert!(runner.polls_with(&task.waker()) && !runner.polls_with(&other.waker()));
        assert!(runner.spawned_at().is_some_and(|at| ptr::eq(at, here)));
    }

    #[test]
    fn the_slot_comes_before_the_ring() {
        let runner = Runner::new(7);
        let ran = Arc::new(Mutex::new(Vec::new()));
        let named = |name: &'static str| {
            let ran = ran.clone();
            task(move || ran.lock().unwrap().push(name))
        };
        let pop = || {
            assert!(runner.has_tasks());
            runner.run(runner.pop().expect("there is one"));
        };
        assert!(!runner.has_tasks() && runner.pop().is_none());
        for name in ["ring 1", "ring 2"] {
            runner.ring.push(named(name)).unwrap();
        }
        runner.slot.put(named("slot")).unwrap();
        (0..3).for_each(|_| pop());
        assert!(!runner.has_tasks() && runner.pop().is_none());
        runner.slot.put(named("slot again")).unwrap();
        pop();
        assert_eq!(*ran.lock().unwrap(), ["slot", "ring 1", "ring 2", "slot again"]);
    }

    #[test]
    fn counts_are_added_to_those_that_are_there() {
        let (all, more) = (Counters::default(), Counters::default());
        more.direct.add(1);
        more.surplus.add(2);
        more.stolen.add(3);
        (0..2).for_each(|_| all.absorb(&more));
        assert_eq!((all.direct.get(), all.surplus.get(), all.stolen.get()), (2, 4, 6));
    }
}
