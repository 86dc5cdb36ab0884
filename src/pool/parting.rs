//! [`Parting`]: who waits for the report of a runtime's end, and what has become known of it so far.
//!
//! **Tasks that wait for the report** are known by what was on the stack when they asked ([`Inside`]).
//!
//! | on the stack | what comes of it |
//! |---|---|
//! | the task's poll | the task is kept by whoever cancels, until it has had the report |
//! | the same, and that poll has not ended | its thread counts neither as one to wait for nor as stuck: it waits in somebody else's `block_on` |
//! | tasks below a `block_on` of ours | the same, until the caller is gone |
//!
//! They are counted as they come and go, and found by what tells them apart: ten thousand may ask. How many there are is said to who
//! waits for the last end (`executor/vigil.rs`) under the same lock: an older number never follows a newer one.

use std::collections::HashMap;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::{Backstage, Crew, Drained};
use crate::executor::Inside;
use crate::sync::{self, Instant, Mutex, thread};
use crate::waking;

/// The end of a crew.
#[derive(Default)]
pub(super) struct Parting {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    has_begun: bool,
    began: Option<Instant>,
    /// Somebody conducts it.
    is_conducted: bool,
    /// Somebody else has stopped the workers, or is about to.
    is_stopped: bool,
    /// Tasks that had ended when it began.
    ended: usize,
    /// The earliest of all that were asked for; `None` is never.
    deadline: Option<Instant>,
    callers: HashMap<u64, Caller>,
    /// Of those that sleep.
    wakers: HashMap<u64, Waker>,
    tasks: HashMap<usize, Kept>,
    below: HashMap<thread::ThreadId, Below>,
    /// Tasks in which somebody waits for the report, by the last two.
    insiders: usize,
    /// So many had ended when somebody else stopped the workers.
    cut_short: Option<usize>,
    backstage: Option<Arc<dyn Backstage>>,
    report: Option<Drained>,
    /// Until when tasks may be polled that have been, since the report is out.
    last_polls: Option<Instant>,
    /// Nobody is kept any more.
    is_over: bool,
    next: u64,
}

/// Who waits for the report.
#[derive(Clone, Copy, Debug)]
struct Caller {
    inside: Inside,
    thread: thread::ThreadId,
}

/// A task that does.
#[derive(Debug)]
struct Kept {
    callers: usize,
    /// Where it asked last, and in which poll.
    thread: thread::ThreadId,
    poll: u64,
    /// It was polled since the report is out.
    was_polled: bool,
}

/// A thread that does, in a `block_on` that is nested in tasks.
#[derive(Debug)]
struct Below {
    callers: usize,
    tasks: usize,
}

/// How it stands.
pub(super) struct Standing {
    pub(super) insiders: usize,
    pub(super) began: Option<Instant>,
    pub(super) deadline: Option<Instant>,
    pub(super) cut_short: Option<usize>,
    /// Tasks that had ended when it began.
    pub(super) ended: usize,
}

impl Standing {
    pub(super) fn is_due(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Parting {
    pub(super) fn standing(&self) -> Standing {
        let book = sync::lock(&self.book);
        let Book { insiders, began, deadline, cut_short, ended, .. } = *book;
        Standing { insiders, began, deadline, cut_short, ended }
    }

    /// Whether the task, by what its waker points to, is not to be cancelled yet.
    pub(super) fn keeps(&self, task: usize) -> bool {
        let book = sync::lock(&self.book);
        !book.is_over && book.tasks.contains_key(&task)
    }

    /// Whether there are such tasks; `None` if there will be none.
    pub(super) fn keeps_any(&self) -> Option<bool> {
        let book = sync::lock(&self.book);
        (book.has_begun && !book.is_over).then_some(!book.tasks.is_empty())
    }

    /// Whether the task waits for the report.
    pub(super) fn awaits(&self, task: usize) -> bool {
        sync::lock(&self.book).tasks.contains_key(&task)
    }

    /// Whether this thread waits for the report, in tasks that wait for it, or in that poll of that task.
    pub(super) fn excuses(&self, thread: thread::ThreadId, polls: &[(usize, u64)]) -> bool {
        let book = sync::lock(&self.book);
        let waits = |(task, poll): &(usize, u64)| {
            book.tasks.get(task).is_some_and(|kept| kept.thread == thread && kept.poll == *poll)
        };
        book.below.contains_key(&thread) || polls.iter().any(waits)
    }

    /// Whether the task is to be polled, now that the report is out: once in any case, and again for some time.
    pub(super) fn gets_a_poll(&self, task: usize) -> bool {
        let mut book = sync::lock(&self.book);
        let in_time = book.last_polls.is_some_and(|until| Instant::now() < until);
        let is_over = book.is_over;
        let kept = book.tasks.get_mut(&task).filter(|_| !is_over);
        kept.is_some_and(|kept| !mem::replace(&mut kept.was_polled, true) || in_time)
    }

    /// What is behind the tasks, once it begins; and whether the report is out.
    pub(super) fn backstage(&self) -> (Option<Arc<dyn Backstage>>, bool) {
        let book = sync::lock(&self.book);
        (book.backstage.clone(), book.report.is_some())
    }

    /// Somebody is to conduct it. False if somebody does.
    pub(super) fn claims_conduct(&self) -> bool {
        !mem::replace(&mut sync::lock(&self.book).is_conducted, true)
    }

    /// He cannot. Whoever relied on him is woken.
    pub(super) fn gives_conduct_up(&self) {
        self.tells(|book| book.is_conducted = false);
    }

    /// The report is out. Tasks that wait for it are polled until then.
    pub(super) fn publish(&self, report: Drained, last_polls: Instant) {
        self.tells(|book| {
            book.report = Some(report);
            book.last_polls = Some(last_polls);
        });
    }

    /// Changes what all wait for, and wakes them: one by one, without the lock, because a waker is anybody's code.
    fn tells(&self, what: impl FnOnce(&mut Book)) {
        let wakers = {
            let mut book = sync::lock(&self.book);
            what(&mut book);
            mem::take(&mut book.wakers)
        };
        wakers.into_values().for_each(waking::wake);
    }

    /// Nobody is kept any more.
    pub(super) fn is_over(&self) {
        sync::lock(&self.book).is_over = true;
    }
}

impl Book {
    fn enters(&mut self, caller: Caller) -> u64 {
        let Caller { inside, thread } = caller;
        match inside {
            Inside::Nothing => {}
            Inside::Task(task, poll) => {
                let fresh = Kept { callers: 0, thread, poll, was_polled: false };
                let kept = self.tasks.entry(task).or_insert(fresh);
                self.insiders += usize::from(kept.callers == 0);
                *kept = Kept { callers: kept.callers + 1, thread, poll, was_polled: kept.was_polled };
            }
            Inside::Below(tasks) => {
                let below = self.below.entry(thread).or_insert(Below { callers: 0, tasks: 0 });
                below.callers += 1;
                self.insiders += tasks.saturating_sub(below.tasks);
                below.tasks = below.tasks.max(tasks);
            }
        }
        self.next += 1;
        self.callers.insert(self.next, caller);
        self.next
    }

    fn leaves(&mut self, key: u64) -> Option<Waker> {
        let waker = self.wakers.remove(&key);
        self.forgets(key);
        waker
    }

    fn forgets(&mut self, key: u64) {
        let Some(Caller { inside, thread }) = self.callers.remove(&key) else { return };
        match inside {
            Inside::Nothing => {}
            Inside::Task(task, _) => {
                let Some(kept) = self.tasks.get_mut(&task) else { return };
                kept.callers -= 1;
                if kept.callers == 0 {
                    self.tasks.remove(&task);
                    self.insiders -= 1;
                }
            }
            Inside::Below(_) => {
                let Some(below) = self.below.get_mut(&thread) else { return };
                below.callers -= 1;
                if below.callers == 0 {
                    self.insiders -= below.tasks;
                    self.below.remove(&thread);
                }
            }
        }
    }
}

/// One who waits for the report, until it is dropped.
pub(super) struct Waiting<'a> {
    crew: &'a Crew,
    key: u64,
}

impl Waiting<'_> {
    /// Waits for the report; `None` if nobody conducts it any more.
    pub(super) async fn is_told(&self) -> Option<Drained> {
        poll_fn(|cx| {
            let waker = cx.waker().clone();
            let mut book = sync::lock(&self.crew.parting.book);
            let is_over = book.report.is_some() || !book.is_conducted;
            let (said, old) = if is_over {
                (Poll::Ready(book.report.clone()), Some(waker))
            } else {
                (Poll::Pending, book.wakers.insert(self.key, waker))
            };
            drop(book);
            waking::discard(old);
            said
        })
        .await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut book = sync::lock(&self.crew.parting.book);
        let waker = book.leaves(self.key);
        self.crew.state().is_enough(book.insiders);
        drop(book);
        waking::discard(waker);
    }
}

impl Crew {
    /// Whether tasks are taken no more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_set()
    }

    /// Whether the report is out.
    pub(crate) fn is_drained(&self) -> bool {
        sync::lock(&self.parting.book).report.is_some()
    }

    /// One more waits for the report; with the first one it begins.
    pub(super) fn takes_part(
        &self,
        backstage: &Arc<dyn Backstage>,
        deadline: Option<Instant>,
    ) -> Waiting<'_> {
        super::stop::will_stop();
        self.closed.set(true);
        let caller = Caller { inside: self.state().is_on_stack(), thread: thread::current().id() };
        // A destructor that blocks already has a name then.
        self.state().watch_drops();
        let mut book = sync::lock(&self.parting.book);
        let key = book.enters(caller);
        let begins = !mem::replace(&mut book.has_begun, true);
        book.deadline = match (book.deadline, deadline) {
            (Some(known), Some(asked)) => Some(known.min(asked)),
            (known, asked) => known.or(asked),
        };
        if begins {
            book.began = Some(Instant::now());
            book.backstage = Some(backstage.clone());
            book.ended = self.state().census().0;
            book.cut_short = book.is_stopped.then_some(book.ended);
        }
        self.state().is_enough(book.insiders);
        drop(book);
        Waiting { crew: self, key }
    }

    /// Somebody stops the workers, and cancels the tasks: there is nothing to wait for.
    pub(super) fn cuts_short(&self) {
        let mut book = sync::lock(&self.parting.book);
        book.is_stopped = true;
        if book.has_begun && book.cut_short.is_none() {
            book.cut_short = Some(self.state().census().0);
            self.state().is_enough(book.insiders);
        }
    }
}

impl std::fmt::Debug for Parting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parting").finish_non_exhaustive()
    }
}
