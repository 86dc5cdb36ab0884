//! [`Parting`]: how far the end of a runtime has come, the callers that wait for its report, and the report.
//!
//! The layer `end` drives this state. Workers ask whether they may cancel tasks.
//!
//! | [`Phase`] | from there on | entered by |
//! |---|---|---|
//! | `Running` | | |
//! | `Closed` | a task that is spawned from outside is cancelled at once | a drain; a shutdown |
//! | `Cancelling` | workers stop after their polls, and drop tasks | the conductor; a shutdown |
//! | `Reported` | the report is out | the conductor |
//!
//! The phase only grows. Changes are made under the lock of the book; reads take no lock.
//!
//! **A caller may be in a task of the runtime**, in its poll or in a `block_on` on top of that. The end does
//! not wait for this task, and cancels it with the others. The thread that waits for the last end
//! (`executor/vigil.rs`) is woken when no more tasks are left than there are callers, and counts then the
//! tasks that callers are in.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::mem;
use std::task::{Poll, Waker};

use crate::executor::State;
use crate::insight::DrainReport;
use crate::sync::{self, AtomicU8, Instant, Mutex, Ordering};
use crate::waking;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Phase {
    Running,
    Closed,
    Cancelling,
    Reported,
}

/// The end of a crew.
#[derive(Debug)]
pub(crate) struct Parting {
    /// A [`Phase`]. Written under the lock of the book.
    phase: AtomicU8,
    book: Mutex<DrainBook>,
}

#[derive(Debug, Default)]
struct DrainBook {
    /// When the end began, and how many tasks had ended then.
    began: Option<(Instant, usize)>,
    /// How many tasks had ended when the workers were stopped.
    ended: usize,
    /// The earliest deadline of all callers; `None` is never.
    deadline: Option<Instant>,
    /// A thread conducts the end.
    is_conducted: bool,
    /// The callers that wait for the report, by their keys: the task of the runtime that each one is in, by
    /// the address that the task's waker points to, and the caller's waker.
    callers: BTreeMap<u64, (Option<usize>, Waker)>,
    report: Option<DrainReport>,
    /// The key of the last caller.
    next: u64,
}

impl Parting {
    pub(super) fn new() -> Self {
        Self { phase: AtomicU8::new(Phase::Running as u8), book: Mutex::default() }
    }

    /// Returns whether the end has come to this phase, or further. Writes before the phase are visible then.
    #[inline]
    fn has_come_to(&self, phase: Phase) -> bool {
        // ORDER: Acquire pairs with the Release in `advance`: all writes before the phase began are
        // visible.
        self.phase.load(Ordering::Acquire) >= phase as u8
    }

    /// Enters a phase, unless the end has come further, and wakes no thread. `_book` shows that the caller
    /// holds the lock.
    fn advance(&self, _book: &mut DrainBook, phase: Phase) {
        if !self.has_come_to(phase) {
            // ORDER: Release pairs with the Acquire in `has_come_to`: it publishes all writes before the
            // phase.
            self.phase.store(phase as u8, Ordering::Release);
        }
    }

    /// Returns whether tasks are not accepted any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.has_come_to(Phase::Closed)
    }

    /// Returns whether the workers are to stop after the polls that they are in.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.has_come_to(Phase::Cancelling)
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.has_come_to(Phase::Reported)
    }

    /// Begins the end, unless another caller did: tasks that are spawned from outside are cancelled from
    /// then on. The earliest `deadline` of all callers counts. Wakes the thread that waits for the last task,
    /// so that it counts again. Returns a key for the caller.
    pub(crate) fn enter(&self, state: &State, deadline: Option<Instant>) -> u64 {
        let mut book = sync::lock(&self.book);
        book.next += 1;
        book.deadline = match (book.deadline, deadline) {
            (Some(known), Some(asked)) => Some(known.min(asked)),
            (known, asked) => known.or(asked),
        };
        book.began.get_or_insert_with(|| (Instant::now(), state.tasks.census().0));
        self.advance(&mut book, Phase::Closed);
        state.tasks.set_threshold(book.callers.len());
        book.next
    }

    /// Has `start` see to it that a thread conducts the end, unless one does.
    pub(crate) fn conduct(&self, start: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut book = sync::lock(&self.book);
        if !book.is_conducted {
            start()?;
            book.is_conducted = true;
        }
        Ok(())
    }

    /// Returns the report when it is out. Otherwise keeps `waker` for that, in place of the caller's former
    /// one. `task` is the task of the runtime that the caller is in.
    pub(crate) fn poll_report(
        &self,
        state: &State,
        key: u64,
        task: Option<usize>,
        waker: Waker,
    ) -> Poll<DrainReport> {
        let mut book = sync::lock(&self.book);
        if let Some(report) = &book.report {
            return Poll::Ready(report.clone());
        }
        let old = book.callers.insert(key, (task, waker));
        if old.as_ref().and_then(|(task, _)| *task) != task {
            state.tasks.set_threshold(book.callers.len());
        }
        drop(book);
        waking::discard(old.map(|(_, waker)| waker));
        Poll::Pending
    }

    /// Removes a caller, and wakes the thread that waits for the last task, so that it counts again.
    pub(crate) fn leave(&self, state: &State, key: u64) {
        let mut book = sync::lock(&self.book);
        let old = book.callers.remove(&key);
        state.tasks.set_threshold(book.callers.len());
        drop(book);
        waking::discard(old.map(|(_, waker)| waker));
    }

    /// Returns how many tasks the end does not wait for, because callers are in them, and the earliest
    /// deadline of all callers; `None` is never.
    pub(crate) fn standing(&self) -> (usize, Option<Instant>) {
        let book = sync::lock(&self.book);
        let tasks: HashSet<usize> = book.callers.values().filter_map(|(task, _)| *task).collect();
        (tasks.len(), book.deadline)
    }

    /// Enters the phase `Cancelling`, and notes how many tasks have ended by then.
    pub(super) fn stop(&self, state: &State) {
        let mut book = sync::lock(&self.book);
        if !self.is_stopped() {
            book.ended = state.tasks.census().0;
            self.advance(&mut book, Phase::Cancelling);
        }
    }

    /// Returns when the end began, how many tasks had ended then, and how many when the workers were
    /// stopped.
    pub(crate) fn counts(&self) -> (Instant, usize, usize) {
        let book = sync::lock(&self.book);
        let (began, ended) = book.began.expect("the conductor was started after that");
        (began, ended, book.ended)
    }

    /// Publishes the report, and wakes all callers: one by one, without the lock, because a waker may run
    /// user code.
    pub(super) fn publish(&self, report: DrainReport) {
        let callers = {
            let mut book = sync::lock(&self.book);
            book.report = Some(report);
            self.advance(&mut book, Phase::Reported);
            mem::take(&mut book.callers)
        };
        callers.into_values().for_each(|(_, waker)| waking::wake(waker));
    }
}
