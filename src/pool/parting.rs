//! [`Parting`]: how far the end of a runtime has come, which tasks wait for its report, and the report.
//!
//! The layer `end` drives this state. Workers ask two questions: which tasks they may cancel, and whether a
//! task that waited for the report gets one more poll.
//!
//! | [`Phase`] | from there on | entered by |
//! |---|---|---|
//! | `Running` | | |
//! | `Closed` | a task that is spawned from outside is cancelled at once | a drain |
//! | `Cancelling` | workers stop after their polls, and drop tasks that are not kept | shutdown; conductor |
//! | `Reported` | the report is out; tasks that waited for it are polled for the last time | the conductor |
//! | `Over` | no task is kept | the conductor |
//!
//! The phase only grows. Changes are made under the lock of the book; reads take no lock.
//!
//! **Tasks that wait for the report** are known by what was on the stack when they asked ([`TasksOnStack`]).
//!
//! | on the stack | effect |
//! |---|---|
//! | the task's poll | the task is kept until it has had the report |
//! | the task, in a poll that goes on: a foreign `block_on` | the thread does not count as stuck |
//! | a task below a `block_on` of ours | the caller panics: the end waits for the task |
//! | a closure that blocks for the same runtime | the caller panics: the end waits for the closure |
//!
//! Callers are counted as they come and go, and each has a key, so that ten thousand callers may ask. The
//! thread that waits for the last end (`executor/vigil.rs`) learns the number of waiting tasks under the
//! same lock, so an older number never replaces a newer one.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::task::{Poll, Waker};

use super::Drained;
use crate::executor::{State, TaskPoll, TasksOnStack};
use crate::stage::Stage;
use crate::sync::{self, AtomicU8, Instant, Mutex, Ordering, thread};
use crate::waking;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Phase {
    Running,
    Closed,
    Cancelling,
    Reported,
    Over,
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
    /// The callers that wait for the report, by their keys.
    callers: HashMap<u64, Caller>,
    /// The wakers of the callers that sleep.
    wakers: HashMap<u64, Waker>,
    /// The tasks that wait for the report, by the address that the task's waker points to.
    tasks: HashMap<usize, Insider>,
    /// How many tasks had ended when a shutdown stopped the workers.
    cut_short: Option<usize>,
    report: Option<Drained>,
    /// Once the report is out: the time until which a task may be polled more than once.
    last_polls: Option<Instant>,
    /// The key of the last caller.
    next: u64,
}

/// A caller that waits for the report: the task that it is in, and its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) inside: TasksOnStack,
    thread: thread::ThreadId,
}

impl Caller {
    /// Returns the caller for the calling thread.
    pub(crate) fn here(state: &State) -> Self {
        Self { inside: state.inside(), thread: thread::current().id() }
    }
}

/// A task that waits for the report.
#[derive(Debug)]
struct Insider {
    /// How many of the callers are in this task.
    callers: usize,
    /// The thread on which the task asked last.
    thread: thread::ThreadId,
    /// The stage of the runner when the task asked last.
    poll: Stage,
    /// The task was polled since the report came out.
    was_polled: bool,
}

/// A copy of the parts of the book that the conductor needs.
pub(crate) struct Standing {
    /// How many tasks wait for the report.
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

    /// Returns whether the task must not be cancelled yet. `task` is the data pointer of its waker.
    pub(super) fn keeps(&self, task: usize) -> bool {
        let book = sync::lock(&self.book);
        !self.has_come_to(Phase::Over) && book.tasks.contains_key(&task)
    }

    /// Returns whether any task must not be cancelled yet; `None` if there will be no such task: no drain was
    /// begun, or it is over.
    pub(crate) fn keeps_any(&self) -> Option<bool> {
        let book = sync::lock(&self.book);
        (book.began.is_some() && !self.has_come_to(Phase::Over)).then_some(!book.tasks.is_empty())
    }

    /// Returns whether the task waits for the report.
    pub(crate) fn awaits(&self, task: usize) -> bool {
        sync::lock(&self.book).tasks.contains_key(&task)
    }

    /// Returns whether this thread waits for the report in one of these polls.
    pub(crate) fn excuses(&self, thread: thread::ThreadId, polls: &[TaskPoll]) -> bool {
        let book = sync::lock(&self.book);
        let waits = |poll: &TaskPoll| {
            book.tasks.get(&poll.task).is_some_and(|kept| kept.thread == thread && kept.poll == poll.stage)
        };
        polls.iter().any(waits)
    }

    /// Returns whether the task is to be polled, now that the report is out, and counts that as a poll: once
    /// in any case, and more often until `last_polls` of [`publish`](Self::publish). False for a task that
    /// does not wait for the report.
    pub(super) fn gets_a_poll(&self, task: usize) -> bool {
        let mut book = sync::lock(&self.book);
        let in_time = book.last_polls.is_some_and(|until| Instant::now() < until);
        let kept = book.tasks.get_mut(&task).filter(|_| !self.has_come_to(Phase::Over));
        kept.is_some_and(|kept| !mem::replace(&mut kept.was_polled, true) || in_time)
    }

    /// Counts one more caller that waits for the report, and returns its key. The first one begins the end:
    /// tasks that are spawned from outside are cancelled from then on. The earliest `deadline` of all callers
    /// counts. Wakes the thread that waits for the last task, so that it counts again.
    pub(crate) fn enter(&self, state: &State, caller: Caller, deadline: Option<Instant>) -> u64 {
        let mut book = sync::lock(&self.book);
        let key = book.add(caller);
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
        key
    }

    /// Returns the report when it is out; `None` if no thread conducts the end any more. Otherwise keeps
    /// `waker` for that, in place of the caller's former one. `caller` is where the caller is polled now.
    pub(crate) fn poll_report(
        &self,
        state: &State,
        key: u64,
        caller: Caller,
        waker: Waker,
    ) -> Poll<Option<Drained>> {
        let mut book = sync::lock(&self.book);
        if book.move_to(key, caller) {
            state.set_threshold(book.tasks.len());
        }
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
    pub(crate) fn leave(&self, state: &State, key: u64) {
        let mut book = sync::lock(&self.book);
        let waker = book.remove(key);
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

    /// Publishes the report, and wakes all callers. Tasks that wait for it are polled until `last_polls`.
    pub(crate) fn publish(&self, report: Drained, last_polls: Instant) {
        self.change(|book| {
            book.report = Some(report);
            book.last_polls = Some(last_polls);
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

    /// Keeps no task from now on.
    pub(crate) fn finish(&self) {
        self.advance(&mut sync::lock(&self.book), Phase::Over);
    }
}

impl DrainBook {
    /// Adds a caller, and returns its key.
    fn add(&mut self, caller: Caller) -> u64 {
        self.count(caller);
        self.next += 1;
        self.callers.insert(self.next, caller);
        self.next
    }

    /// Notes where the caller is polled, and counts the caller for the tasks there in place of the former
    /// ones. Returns false if that has not changed.
    fn move_to(&mut self, key: u64, caller: Caller) -> bool {
        let Some(before) = self.callers.insert(key, caller).filter(|before| *before != caller) else {
            return false;
        };
        // In this order: a task to which both callers belong stays in the book.
        self.count(caller);
        self.discount(before);
        true
    }

    /// Removes a caller, and returns its waker if it sleeps.
    fn remove(&mut self, key: u64) -> Option<Waker> {
        if let Some(caller) = self.callers.remove(&key) {
            self.discount(caller);
        }
        self.wakers.remove(&key)
    }

    /// Counts a caller for the task that it is in, if any. The task's entry takes the thread and the poll of
    /// its latest caller.
    fn count(&mut self, Caller { inside, thread }: Caller) {
        if let TasksOnStack::Task(TaskPoll { task, stage: poll, .. }) = inside {
            let fresh = Insider { callers: 0, thread, poll, was_polled: false };
            let kept = self.tasks.entry(task).or_insert(fresh);
            *kept = Insider { callers: kept.callers + 1, thread, poll, was_polled: kept.was_polled };
        }
    }

    /// Takes back what [`count`](Self::count) did. With its last caller, a task leaves the book.
    fn discount(&mut self, caller: Caller) {
        let TasksOnStack::Task(TaskPoll { task, .. }) = caller.inside else { return };
        let Some(kept) = self.tasks.get_mut(&task) else { return };
        kept.callers -= 1;
        if kept.callers == 0 {
            self.tasks.remove(&task);
        }
    }
}

impl fmt::Debug for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parting").finish_non_exhaustive()
    }
}
