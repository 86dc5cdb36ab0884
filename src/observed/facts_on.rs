//! [`TaskFacts`]: what a dump says of a task, beyond the list of its executor: its state, its wakers, and the
//! stack of each wait.
//!
//! A future that has to wait clones its waker, and the stack at that moment shows for what it waits. So while
//! [waits](set_waits) are recorded, each clone in a poll of the same task takes a backtrace. The addresses in
//! it are resolved when a dump is displayed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::panic::Location;
use std::ptr;
// Std's in all modes: models do not observe tasks.
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread_local;
use std::time::{Duration, Instant};

use super::kind::TaskKind;
use super::meta::SpawnMeta;
use crate::stack::Stack;

/// Whether tasks that are spawned now get facts, and clones take backtraces.
static ARE_WAITS_ON: AtomicBool = AtomicBool::new(false);
/// The facts of all tasks, by their addresses. No user code runs under the lock.
static ALL_FACTS: Mutex<BTreeMap<usize, Arc<TaskFacts>>> = Mutex::new(BTreeMap::new());

/// How many stacks are kept for a task. A wait that lasts is among the first, and one in a loop among the
/// last.
const MOST_WAITS: usize = 8;

thread_local! {
    /// The facts of the task that this thread polls, or null; and an address on the stack above the poll.
    static POLLED: Cell<(*const TaskFacts, usize)> = const { Cell::new((ptr::null(), 0)) };
}

/// What a dump says of a task. Other threads read it at any time: the values are close, but not a snapshot.
#[derive(Debug)]
pub(crate) struct TaskFacts {
    pub(crate) id: u64,
    pub(crate) name: Option<Box<str>>,
    pub(crate) spawned_at: &'static Location<'static>,
    /// The address of the executor; 0 if that is not known here.
    pub(crate) executor: usize,
    spawned: Instant,
    /// The address that the task's own waker points to; 0 before the first poll.
    task: AtomicUsize,
    /// Whether a poll is in progress.
    runs: AtomicBool,
    /// Whether the task was woken since its last poll began.
    is_woken: AtomicBool,
    /// When the last poll ended, in nanoseconds after the spawn; 0 before that.
    polled: AtomicU64,
    /// The number of the wakers that exist.
    wakers: AtomicUsize,
    /// The stacks of the clones since the task had no waker: the first ones and the last ones, if there were
    /// many.
    waits: Mutex<Vec<Stack>>,
}

/// The facts as the task has them. Dropping it takes them off the list.
#[derive(Debug)]
pub(super) struct OwnedFacts(Arc<TaskFacts>);

/// The facts as a waker of the task has them.
#[derive(Debug)]
pub(super) struct SharedFacts(Arc<TaskFacts>);

/// A poll of the task, until this is dropped.
pub(super) struct PollFacts<'a> {
    facts: &'a TaskFacts,
    below: (*const TaskFacts, usize),
}

/// Sets whether tasks that are spawned from now on get facts, and whether clones take backtraces.
pub(crate) fn set_waits(are_on: bool) {
    ARE_WAITS_ON.store(are_on, Ordering::Relaxed);
}

fn are_waits_on() -> bool {
    ARE_WAITS_ON.load(Ordering::Relaxed)
}

/// Returns the facts of all unfinished tasks that have some, in the order of their numbers.
pub(crate) fn all_facts() -> Vec<Arc<TaskFacts>> {
    let mut all: Vec<_> = lock(&ALL_FACTS).values().cloned().collect();
    all.sort_by_key(|facts| facts.id);
    all
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OwnedFacts {
    #[inline]
    pub(super) fn is_wanted() -> bool {
        are_waits_on()
    }

    /// Begins the facts of a task; `None` for what is no task, and if waits are not recorded.
    pub(super) fn begin(meta: &SpawnMeta<'_>, kind: TaskKind, id: u64, executor: usize) -> Option<Self> {
        let is_task = matches!(kind, TaskKind::Task | TaskKind::Local | TaskKind::Strand);
        if !is_task || !are_waits_on() {
            return None;
        }
        let facts = Arc::new(TaskFacts {
            id,
            name: meta.name.map(Box::from),
            spawned_at: meta.spawned_at,
            executor,
            spawned: Instant::now(),
            task: AtomicUsize::new(0),
            runs: AtomicBool::new(false),
            is_woken: AtomicBool::new(false),
            polled: AtomicU64::new(0),
            wakers: AtomicUsize::new(0),
            waits: Mutex::new(Vec::new()),
        });
        lock(&ALL_FACTS).insert(Arc::as_ptr(&facts).addr(), facts.clone());
        Some(Self(facts))
    }

    pub(super) fn share(&self) -> SharedFacts {
        SharedFacts(self.0.clone())
    }

    /// Begins a poll of the task whose own waker points to `task`. The stack of the poll is below `outer`.
    pub(super) fn begin_poll(&self, task: usize, outer: usize) -> PollFacts<'_> {
        let facts = &*self.0;
        facts.task.store(task, Ordering::Relaxed);
        facts.is_woken.store(false, Ordering::Relaxed);
        facts.runs.store(true, Ordering::Relaxed);
        let below = POLLED.try_with(|polled| polled.replace((facts, outer))).unwrap_or((ptr::null(), 0));
        PollFacts { facts, below }
    }
}

impl Drop for OwnedFacts {
    fn drop(&mut self) {
        let facts = lock(&ALL_FACTS).remove(&Arc::as_ptr(&self.0).addr());
        drop(facts);
    }
}

impl Drop for PollFacts<'_> {
    fn drop(&mut self) {
        let _ = POLLED.try_with(|polled| polled.set(self.below));
        let since = u64::try_from(self.facts.spawned.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.facts.polled.store(since.max(1), Ordering::Relaxed);
        self.facts.runs.store(false, Ordering::Relaxed);
    }
}

impl SharedFacts {
    /// Counts a clone of the waker. Takes a backtrace if the thread polls the task.
    pub(super) fn note_clone(&self) {
        let facts = &*self.0;
        let is_only = facts.wakers.fetch_add(1, Ordering::Relaxed) == 0;
        let (polled, outer) = POLLED.try_with(Cell::get).unwrap_or((ptr::null(), 0));
        if ptr::eq(polled, facts) {
            facts.add_wait(are_waits_on().then(|| Stack::here(outer)), is_only);
        }
    }

    pub(super) fn note_drop(&self) {
        self.0.wakers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn note_wake(&self) {
        self.0.is_woken.store(true, Ordering::Relaxed);
    }
}

impl TaskFacts {
    /// Returns the address that the task's own waker points to; 0 before the first poll.
    pub(crate) fn task(&self) -> usize {
        self.task.load(Ordering::Relaxed)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.runs.load(Ordering::Relaxed)
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed)
    }

    pub(crate) fn wakers(&self) -> usize {
        self.wakers.load(Ordering::Relaxed)
    }

    pub(crate) fn age(&self) -> Duration {
        self.spawned.elapsed()
    }

    /// Returns how long ago the last poll ended; `None` before that.
    pub(crate) fn since_poll(&self) -> Option<Duration> {
        let polled = self.polled.load(Ordering::Relaxed);
        (polled > 0).then(|| self.age().saturating_sub(Duration::from_nanos(polled)))
    }

    /// Adds the stack of a clone. If the waker `is_only`, the earlier waits are over. Without a stack, it is
    /// not known any more where the task waits.
    fn add_wait(&self, stack: Option<Stack>, is_only: bool) {
        let mut waits = lock(&self.waits);
        let stale = if is_only || stack.is_none() {
            mem::take(&mut *waits)
        } else {
            // The oldest of the last ones gives way.
            (waits.len() == MOST_WAITS).then(|| waits.remove(MOST_WAITS / 2)).into_iter().collect()
        };
        waits.extend(stack);
        // A stack takes kilobytes, which are not freed under the lock.
        drop(waits);
        drop(stale);
    }

    /// Returns the stack of the last clone if there is one waker. Otherwise returns those of the clones since
    /// the task had no waker, the first ones and the last ones if there were many: which of these wakers
    /// still exist is not known.
    pub(crate) fn waits(&self) -> Vec<Stack> {
        let (waits, wakers) = (lock(&self.waits), self.wakers());
        let ended = if wakers > 1 { 0 } else { waits.len().saturating_sub(1) };
        waits[ended..].to_vec()
    }
}
