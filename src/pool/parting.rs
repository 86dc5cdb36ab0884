//! [`Parting`]: how far the end of a runtime has come, the callers that wait for its report, and the report.
//!
//! The layer `end` drives this state. Workers ask whether they may cancel tasks.
//!
//! | [`Phase`] | from there on | entered by |
//! |---|---|---|
//! | `Running` | | |
//! | `Closed` | a task that is spawned from outside is cancelled at once | a drain |
//! | `Cancelling` | workers stop after their polls, and drop tasks | shutdown; conductor |
//! | `Reported` | the report is out | the conductor |
//!
//! The phase only grows. Changes are made under the lock of the book; reads take no lock.
//!
//! **A caller may be in what the end waits for**, which is seen by what is on its stack
//! ([`TasksOnStack`](crate::executor::TasksOnStack)).
//!
//! | on the stack | effect |
//! |---|---|
//! | a task's poll | the end does not wait for the task, and cancels it with the others |
//! | a task below a `block_on` of ours | the caller panics: the end waits for the task |
//! | a closure that blocks for the same runtime | the caller panics: the end waits for the closure |
//!
//! The callers in each task are counted as they come and go. The thread that waits for the last end
//! (`executor/vigil.rs`) learns the number of such tasks under the same lock, so an older number never
//! replaces a newer one.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::task::{Poll, Waker};

use crate::executor::State;
use crate::insight::Drained;
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
pub(crate) struct Parting {
    /// A [`Phase`]. Written under the lock of the book.
    phase: AtomicU8,
    book: Mutex<DrainBook>,
}

#[derive(Default)]
struct DrainBook {
    /// When the first drain began.
    began: Option<Instant>,
    /// A thread conducts the end.
    is_conducted: bool,
    /// Tasks that had ended when the first drain began.
    ended: usize,
    /// The earliest deadline of all callers; `None` is never.
    deadline: Option<Instant>,
    /// The wakers of the callers that sleep, by their keys.
    wakers: HashMap<u64, Waker>,
    /// How many callers are in each task of the runtime, by the address that the task's waker points to.
    tasks: HashMap<usize, usize>,
    /// How many tasks had ended when a shutdown stopped the workers.
    cut_short: Option<usize>,
    report: Option<Drained>,
    /// The key of the last caller.
    next: u64,
}

/// A copy of the parts of the book that the conductor needs.
pub(crate) struct Standing {
    /// How many tasks the end does not wait for, because they wait for the report.
    pub(crate) insiders: usize,
    /// When the first drain began.
    pub(crate) began: Option<Instant>,
    /// The earliest deadline of all callers; `None` is never.
    pub(crate) deadline: Option<Instant>,
    /// How many tasks had ended when a shutdown stopped the workers, if one did.
    pub(crate) cut_short: Option<usize>,
    /// Tasks that had ended when the end began.
    pub(crate) ended: usize,
}

impl Standing {
    pub(crate) fn is_due(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
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

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.has_come_to(Phase::Closed)
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.has_come_to(Phase::Cancelling)
    }

    /// Returns whether the report is out.
    pub(super) fn is_reported(&self) -> bool {
        self.has_come_to(Phase::Reported)
    }

    /// Returns a copy of the parts of the book that the conductor needs, all of one moment.
    pub(crate) fn standing(&self) -> Standing {
        let book = sync::lock(&self.book);
        let DrainBook { began, deadline, cut_short, ended, .. } = *book;
        Standing { insiders: book.tasks.len(), began, deadline, cut_short, ended }
    }

    /// Counts one more caller that waits for the report, and returns its key. `task` is the one that it is
    /// in, if any. The first caller begins the end: tasks that are spawned from outside are cancelled from
    /// then on. The earliest `deadline` of all callers counts. Wakes the thread that waits for the last task,
    /// so that it counts again.
    pub(crate) fn enter(&self, state: &State, task: Option<usize>, deadline: Option<Instant>) -> u64 {
        let mut book = sync::lock(&self.book);
        book.count(task);
        book.next += 1;
        book.deadline = match (book.deadline, deadline) {
            (Some(known), Some(asked)) => Some(known.min(asked)),
            (known, asked) => known.or(asked),
        };
        self.advance(&mut book, Phase::Closed);
        if book.began.is_none() {
            book.began = Some(Instant::now());
            book.ended = state.census().0;
            book.cut_short = self.is_stopped().then_some(book.ended);
        }
        state.set_threshold(book.tasks.len());
        book.next
    }

    /// Counts a caller for the task that it is in now, in place of that before.
    pub(crate) fn move_to(&self, state: &State, before: Option<usize>, now: Option<usize>) {
        let mut book = sync::lock(&self.book);
        book.discount(before);
        book.count(now);
        state.set_threshold(book.tasks.len());
    }

    /// Returns the report when it is out; `None` if no thread conducts the end any more. Otherwise keeps
    /// `waker` for that, in place of the caller's former one.
    pub(crate) fn poll_report(&self, key: u64, waker: Waker) -> Poll<Option<Drained>> {
        let mut book = sync::lock(&self.book);
        let is_over = book.report.is_some() || !book.is_conducted;
        let (report, old) = if is_over {
            (Poll::Ready(book.report.clone()), Some(waker))
        } else {
            (Poll::Pending, book.wakers.insert(key, waker))
        };
        drop(book);
        waking::discard(old);
        report
    }

    /// Removes a caller, and wakes the thread that waits for the last task, so that it counts again.
    pub(crate) fn leave(&self, state: &State, key: u64, task: Option<usize>) {
        let mut book = sync::lock(&self.book);
        let waker = book.wakers.remove(&key);
        book.discount(task);
        state.set_threshold(book.tasks.len());
        drop(book);
        waking::discard(waker);
    }

    /// Ends the wait of a drain, if one is in progress, because a shutdown stops the workers and cancels the
    /// tasks. Enters the phase `Cancelling` in any case, and wakes no worker.
    pub(crate) fn cut_short(&self, state: &State) {
        let mut book = sync::lock(&self.book);
        if book.began.is_some() && book.cut_short.is_none() {
            book.cut_short = Some(state.census().0);
            state.set_threshold(book.tasks.len());
        }
        self.advance(&mut book, Phase::Cancelling);
    }

    /// Enters the phase `Cancelling`.
    pub(super) fn stop(&self) {
        self.advance(&mut sync::lock(&self.book), Phase::Cancelling);
    }

    /// Claims to conduct the end. Returns false if another thread has claimed it.
    pub(crate) fn claim_conduct(&self) -> bool {
        !mem::replace(&mut sync::lock(&self.book).is_conducted, true)
    }

    /// Gives the claim back, and wakes all callers: one of them has to claim it.
    pub(crate) fn give_conduct_up(&self) {
        self.change(|book| book.is_conducted = false);
    }

    /// Publishes the report, and wakes all callers.
    pub(crate) fn publish(&self, report: Drained) {
        self.change(|book| {
            book.report = Some(report);
            self.advance(book, Phase::Reported);
        });
    }

    /// Applies `what` to the book, then wakes all callers: one by one, without the lock, because a waker may
    /// run user code.
    fn change(&self, what: impl FnOnce(&mut DrainBook)) {
        let wakers = {
            let mut book = sync::lock(&self.book);
            what(&mut book);
            mem::take(&mut book.wakers)
        };
        wakers.into_values().for_each(waking::wake);
    }
}

impl DrainBook {
    fn count(&mut self, task: Option<usize>) {
        if let Some(task) = task {
            *self.tasks.entry(task).or_default() += 1;
        }
    }

    /// Takes back what [`count`](Self::count) did. With its last caller, a task leaves the book.
    fn discount(&mut self, task: Option<usize>) {
        let Some(task) = task else { return };
        let Some(callers) = self.tasks.get_mut(&task) else { return };
        *callers -= 1;
        if *callers == 0 {
            self.tasks.remove(&task);
        }
    }
}

impl fmt::Debug for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parting").finish_non_exhaustive()
    }
}
