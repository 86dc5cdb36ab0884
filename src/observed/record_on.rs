//! [`Record`]: what a dump says of a task, beyond the list of its executor: its state, its wakers, and the
//! stack of each wait.
//!
//! A future that has to wait clones its waker, and the stack at that moment shows for what it waits. So while
//! [waits](set_waits) are recorded, each clone in a poll of the same task takes a backtrace. The addresses in
//! it are resolved when a dump is displayed.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::kind::TaskKind;
use super::meta::SpawnMeta;
use crate::sync::{
    self, AtomicBool, AtomicU64, AtomicUsize, Instant, Mutex, Ordering, process_static, thread_local,
};

process_static! {
    /// Whether tasks that are spawned now get a record, and clones take backtraces.
    static ARE_WAITS_ON: AtomicBool = AtomicBool::new(false);
}

process_static! {
    /// The records of all tasks, by their addresses. No user code runs under the lock.
    static RECORDS: Mutex<BTreeMap<usize, Arc<Record>>> = Mutex::new(BTreeMap::new());
}

thread_local! {
    /// The record of the task that this thread polls, or null.
    static POLLED: Cell<*const Record> = const { Cell::new(ptr::null()) };
}

/// What a dump says of a task. Other threads read it at any time: the values are close, but not a snapshot.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
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
    /// The stacks of the last clones, as many as there are wakers.
    waits: Mutex<Vec<Arc<Backtrace>>>,
}

/// A record as its task has it. Dropping it takes it off the list.
#[derive(Debug)]
pub(super) struct TaskRecord(Arc<Record>);

/// A record as a waker of the task has it.
#[derive(Debug)]
pub(super) struct SharedRecord(Arc<Record>);

/// A poll of the task, until this is dropped.
pub(super) struct PollRecord<'a> {
    record: &'a Record,
    below: *const Record,
}

/// Sets whether tasks that are spawned from now on get a record, and whether clones take backtraces.
pub(crate) fn set_waits(are_on: bool) {
    ARE_WAITS_ON.store(are_on, Ordering::Relaxed);
}

pub(crate) fn are_waits_on() -> bool {
    ARE_WAITS_ON.load(Ordering::Relaxed)
}

/// Returns the records of all unfinished tasks that have one, in the order of their numbers.
pub(crate) fn records() -> Vec<Arc<Record>> {
    let mut all: Vec<_> = sync::lock(&RECORDS).values().cloned().collect();
    all.sort_by_key(|record| record.id);
    all
}

impl TaskRecord {
    #[inline]
    pub(super) fn is_wanted() -> bool {
        are_waits_on()
    }

    /// Makes a record; `None` for what is no task, and if waits are not recorded.
    pub(super) fn begin(meta: &SpawnMeta<'_>, kind: TaskKind, id: u64, executor: usize) -> Option<Self> {
        let is_task = matches!(kind, TaskKind::Task | TaskKind::Local | TaskKind::Strand);
        if !is_task || !are_waits_on() {
            return None;
        }
        let record = Arc::new(Record {
            id,
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
        sync::lock(&RECORDS).insert(Arc::as_ptr(&record).addr(), record.clone());
        Some(Self(record))
    }

    pub(super) fn share(&self) -> SharedRecord {
        SharedRecord(self.0.clone())
    }

    /// Begins a poll of the task whose own waker points to `task`.
    pub(super) fn begin_poll(&self, task: usize) -> PollRecord<'_> {
        let record = &*self.0;
        record.task.store(task, Ordering::Relaxed);
        record.is_woken.store(false, Ordering::Relaxed);
        record.runs.store(true, Ordering::Relaxed);
        let below = POLLED.try_with(|polled| polled.replace(record)).unwrap_or(ptr::null());
        PollRecord { record, below }
    }
}

impl Drop for TaskRecord {
    fn drop(&mut self) {
        let record = sync::lock(&RECORDS).remove(&Arc::as_ptr(&self.0).addr());
        drop(record);
    }
}

impl Drop for PollRecord<'_> {
    fn drop(&mut self) {
        let _ = POLLED.try_with(|polled| polled.set(self.below));
        let since = u64::try_from(self.record.spawned.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record.polled.store(since.max(1), Ordering::Relaxed);
        self.record.runs.store(false, Ordering::Relaxed);
    }
}

impl SharedRecord {
    /// Counts a clone of the waker. Takes a backtrace if the thread polls the task.
    pub(super) fn note_clone(&self) {
        let record = &*self.0;
        let wakers = record.wakers.fetch_add(1, Ordering::Relaxed) + 1;
        let is_polled = POLLED.try_with(|polled| ptr::eq(polled.get(), record)).unwrap_or(false);
        if is_polled && are_waits_on() {
            let wait = Arc::new(Backtrace::force_capture());
            let mut waits = sync::lock(&record.waits);
            waits.push(wait);
            let surplus = waits.len().saturating_sub(wakers);
            let stale: Vec<_> = waits.drain(..surplus).collect();
            drop(waits);
            drop(stale);
        }
    }

    pub(super) fn note_drop(&self) {
        self.0.wakers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn note_wake(&self) {
        self.0.is_woken.store(true, Ordering::Relaxed);
    }
}

impl Record {
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

    /// Returns the stacks of the last clones, no more than there are wakers.
    pub(crate) fn waits(&self) -> Vec<Arc<Backtrace>> {
        let waits = sync::lock(&self.waits);
        let surplus = waits.len().saturating_sub(self.wakers());
        waits[surplus..].to_vec()
    }
}
