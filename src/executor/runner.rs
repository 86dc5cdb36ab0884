//! [`Runner`]: a `run` in progress, with a direct slot, a ring for the surplus of its thread, and its state
//! for other threads.

use std::ptr::{self, NonNull};
use std::task::Waker;

use async_task::Runnable;
use concurrent_queue::ConcurrentQueue;

use self::orders::Orders;
use self::poll_cell::PollCell;
pub(crate) use self::poll_cell::{Caught, TaskPoll};
use super::sleeper::Sleeper;
use super::slot::Slot;
use crate::budget;
use crate::flight::{self, FoundIn};
use crate::line::Rank;
use crate::observed::unwrapped;
use crate::stage::StageMark;
use crate::sync::{self, Counter, Flag};
use crate::waking;

mod orders;
mod poll_cell;

/// Tasks that fit into the ring; more go to the injector.
const RING: usize = 256;

/// Why a runner leaves a task to takers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The task was never polled, and a standby has found it in the injector.
    Unknown,
    /// The task is known to compute.
    Slow,
}

/// How tasks came to be polled. A task that was cancelled is counted, too, when it is taken to be dropped,
/// and one that is left to takers.
#[derive(Debug, Default)]
pub(crate) struct PollCounters {
    /// The polls, by [`FoundIn`].
    polls: [Counter; 3],
}

impl PollCounters {
    /// Counts the poll of a task that the runner has found in this place, and polls next.
    #[inline]
    pub(super) fn found(&self, place: FoundIn) {
        self.polls[place as usize].add(1);
        flight::finds(place);
    }

    /// Returns the polls of tasks that were found in this place.
    pub(crate) fn get(&self, place: FoundIn) -> u64 {
        self.polls[place as usize].get()
    }

    pub(crate) fn total(&self) -> u64 {
        self.polls.iter().map(Counter::get).sum()
    }

    /// Adds what `other` counted so far. The counts of `other` stay.
    pub(crate) fn absorb(&self, other: &PollCounters) {
        self.polls.iter().zip(&other.polls).for_each(|(sum, more)| sum.add_shared(more.get()));
    }
}

/// A `run` in progress.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The address of its executor. Only compared.
    executor: usize,
    /// The thread that polls it, as [`place`](super::place) names it. Only its thread writes it. Std's in all
    /// modes: it orders nothing.
    pub(super) thread: std::sync::atomic::AtomicUsize,
    /// Whether slot and ring stay empty: all tasks go through the injector, in the order in which they became
    /// ready. A copy of the state's flag, so that the path into the slot does not read the state.
    pub(super) keeps_order: bool,
    pub(super) slot: Slot,
    pub(super) ring: ConcurrentQueue<Runnable>,
    pub(super) sleeper: sync::Arc<Sleeper>,
    /// Whether it is polled with the waker of the `block_on`'s own future. Only its own thread uses this flag
    /// and the next two.
    pub(super) is_root: Flag,
    /// Whether it may be in the line.
    pub(super) in_line: Flag,
    /// Whether it asks to be polled, because it has tasks after all. It counts as awake until then.
    pub(super) requested: Flag,
    /// Requests of other threads.
    pub(crate) orders: Orders,
    pub(crate) counters: PollCounters,
    /// Which task it polls.
    pub(crate) poll: PollCell,
    /// On the poll whose task is [left to takers](Left) when it wakes itself; the bit says that it is slow.
    leaves: StageMark,
    /// Whether the task that it polls was taken from a queue that this kind of runner inspects: a standby
    /// the injector, a taker the slow queue. Only its own thread uses this flag.
    pub(super) inspects: Flag,
    /// Whether it is a *standby*, and not a *taker*: its thread leads while the takers compute, and polls what
    /// its own events wake, and the quick tasks in the injector. Set before its first poll; cleared by the
    /// deputy.
    pub(super) stands_by: Flag,
}

impl Runner {
    /// Creates a runner for the executor at this address, which does not list it yet. Its first round polls
    /// the future, and looks for tasks in all queues. If it `keeps_order`, the tasks that it queues go to the
    /// injector.
    pub(super) fn new(executor: usize, keeps_order: bool) -> Self {
        Self {
            executor,
            thread: 0.into(),
            keeps_order,
            slot: Slot::new(),
            ring: ConcurrentQueue::bounded(RING),
            sleeper: sync::Arc::new(Sleeper::new(true)),
            is_root: Flag::new(false),
            in_line: Flag::new(false),
            requested: Flag::new(false),
            orders: Orders::new(),
            counters: PollCounters::default(),
            poll: PollCell::new(),
            leaves: StageMark::default(),
            inspects: Flag::new(false),
            stands_by: Flag::new(false),
        }
    }

    #[inline]
    pub(super) fn is_of(&self, executor: usize) -> bool {
        self.executor == executor
    }

    /// Polls one task, or drops its future if the task was cancelled. Notes the begin and the end in the
    /// stage. A panic ends here: only a poll of a foreign task panics, unless `async-task` catches that.
    #[inline]
    pub(super) fn run(&self, task: Runnable) {
        let address = task.into_raw();
        budget::refill();
        self.poll.begin(address);
        waking::call(|| {
            // SAFETY: the pointer is that of `into_raw` above.
            unsafe { Runnable::<()>::from_raw(address) }.run();
        });
        self.poll.end();
    }

    /// Returns whether it leaves some tasks to takers. In order there are no takers; and in another library's
    /// `block_on`, where no task is caught, a task that wakes itself goes to the injector.
    pub(super) fn may_leave(&self) -> bool {
        !self.keeps_order && self.sleeper.rank() == Rank::Host
    }

    /// Has the task that is polled now left to takers if it wakes itself. Only for the runner's own thread.
    #[cold]
    pub(super) fn leave_task(&self, left: Left) {
        self.leaves.set(self.poll.stage(), left == Left::Slow);
    }

    /// Returns whether and as what the task that is polled now is left to takers.
    #[inline]
    pub(super) fn leaves_task(&self) -> Option<Left> {
        let stage = self.poll.stage();
        let is_slow = self.leaves.get(stage).filter(|_| stage.is_at_work())?;
        Some(if is_slow { Left::Slow } else { Left::Unknown })
    }

    /// Returns whether the task with this address is polled now. Only for the runner's own thread.
    pub(super) fn polls(&self, task: NonNull<()>) -> bool {
        self.poll.stage().is_at_work() && ptr::eq(self.poll.task(), task.as_ptr())
    }

    pub(super) fn polls_with(&self, waker: &Waker) -> bool {
        let data = unwrapped(waker).data();
        // The data of a waker that does nothing may be null, and so is the address if there was no task.
        !data.is_null() && ptr::eq(self.poll.task(), data)
    }

    #[inline]
    pub(crate) fn is_standby(&self) -> bool {
        self.stands_by.is_set()
    }

    /// Wakes the thread of a standby, to look at the injector.
    pub(crate) fn wake_standby(&self) {
        self.sleeper.wake();
    }

    /// Makes a standby a taker from now on, and wakes its thread. The wake-up stays until
    /// the thread takes it, so the thread cannot miss it on its way to sleep.
    pub(crate) fn end_standby(&self) {
        self.stands_by.set(false);
        self.orders.search();
        self.sleeper.wake();
    }

    pub(crate) fn has_tasks(&self) -> bool {
        !self.slot.is_empty() || !self.ring.is_empty()
    }

    /// Returns the number of tasks that wait here.
    pub(crate) fn queued(&self) -> usize {
        usize::from(!self.slot.is_empty()) + self.ring.len()
    }

    /// Takes the first of the tasks that wait here.
    pub(super) fn pop(&self) -> Option<Runnable> {
        self.slot.take().or_else(|| self.ring.pop().ok())
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::panic::Location;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::stage::Stage;

    /// Returns a scheduled task that runs `body`.
    fn task(body: impl FnOnce() + Send + 'static) -> Runnable {
        let (runnable, task) = async_task::spawn(async move { body() }, |_| unreachable!("it does not wait"));
        task.detach();
        runnable
    }

    #[test]
    fn a_stage_tells_whether_a_task_is_polled_and_whether_another_was() {
        let runner = Arc::new(Runner::new(7, false));
        let before = runner.poll.stage();
        let within = Arc::new(Mutex::new(before));
        let look = {
            let (runner, within) = (runner.clone(), within.clone());
            move || *within.lock().unwrap() = runner.poll.stage()
        };
        runner.run(task(look));
        let (within, after) = (*within.lock().unwrap(), runner.poll.stage());
        assert_eq!([before, within, after].map(Stage::is_at_work), [false, true, false]);
        assert_ne!(before, after);
    }

    #[test]
    fn a_runner_knows_its_executor_and_the_task_that_began_last() {
        let runner = Runner::new(7, false);
        assert!(runner.is_of(7) && !runner.is_of(8));
        assert!(runner.poll.task_poll().is_none());
        let [task, other] = [(); 2].map(|()| {
            let (runnable, task) = async_task::spawn(async {}, |_| ());
            task.detach();
            runnable
        });
        assert!(!runner.polls_with(&task.waker()) && !runner.polls_with(Waker::noop()));
        let address = |task: &Runnable| NonNull::new(task.waker().data().cast_mut()).unwrap();
        runner.poll.begin(address(&task));
        assert!(runner.polls_with(&task.waker()) && !runner.polls_with(&other.waker()));
        assert!(runner.polls(address(&task)) && !runner.polls(address(&other)));
        let place = || runner.poll.task_poll().expect("it polls a task").spawned_at;
        assert_eq!(place(), None, "it may be a foreign task");
        let here = Location::caller();
        runner.poll.set_place(here);
        assert_eq!(place(), Some(here));
        assert_eq!(runner.poll.task_poll().unwrap().task, task.waker().data().addr());
        runner.poll.end();
        assert!(runner.poll.task_poll().is_none() && !runner.polls(address(&task)), "it is not at work");
    }

    #[test]
    fn the_slot_comes_before_the_ring() {
        let runner = Runner::new(7, false);
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
    fn absorbed_counts_are_added() {
        let (all, more) = (PollCounters::default(), PollCounters::default());
        let places = [FoundIn::Slot, FoundIn::Queue, FoundIn::Stolen];
        places.iter().zip(1..).for_each(|(place, polls)| more.polls[*place as usize].add(polls));
        (0..2).for_each(|_| all.absorb(&more));
        assert_eq!((places.map(|place| all.get(place)), all.total()), ([2, 4, 6], 12));
    }
}
