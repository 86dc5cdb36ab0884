//! [`Parting`]: the graceful end of a crew, and who waits for its report.
//!
//! One thread of its own conducts it, however many ask and from whatever role. It runs no code of users' before the report is
//! out, so nothing that blocks keeps it; it parks until the last task ends, which unparks it (`executor/vigil.rs`), or until the
//! deadline, so it needs neither a worker nor the reactor.
//!
//! 1. *Closed*: what is spawned is cancelled at once.
//! 2. *The wait*: until no task is left but those that wait for this very report, or until the deadline.
//! 3. *The cancel*: the workers stop after the polls they are in, and drop all other tasks that nobody polls; so does
//!    one more worker, hired for that, because all of them may be stuck. Whoever has not stopped within [`GRACE`] is.
//! 4. *The report* is published, and all that wait for it are woken.
//! 5. *The last ones*: tasks that waited for the report have no worker any more. The conductor polls them, until they
//!    have it; at their next await they are cancelled like the others.
//!
//! **Tasks that wait for the report** are known by what was on the stack when they asked ([`Inside`]): the task itself, which is
//! [kept](Parting::keeps) by whoever cancels; or tasks that wait for a `block_on` that is nested in them, whose thread counts
//! neither as one to wait for nor as stuck.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{Crew, Drained, Pool};
use crate::executor::Inside;
use crate::sync::{self, Event, Instant, Mutex, thread};

/// How long a poll may go on after the deadline before its thread is reported as stuck.
const GRACE: Duration = Duration::from_millis(25);
/// How long somebody may have one of them aside.
const ASIDE: Duration = Duration::from_millis(1);
/// How long tasks that have waited for the report are polled, if they do not come to ask for it.
const LAST_ONES: Duration = Duration::from_millis(100);

/// The end of a crew.
#[derive(Debug)]
pub(super) struct Parting {
    book: Mutex<Book>,
    /// The report is out.
    told: Event,
}

#[derive(Debug, Default)]
struct Book {
    has_begun: bool,
    /// Somebody else has stopped the workers, or is about to.
    is_stopped: bool,
    /// Tasks that were there then.
    at_first: usize,
    /// The earliest of all that were asked for; `None` is never.
    deadline: Option<Instant>,
    callers: Vec<Caller>,
    /// So many tasks were left when somebody else stopped the workers.
    cut_short: Option<usize>,
    /// Nobody is kept any more.
    is_over: bool,
    report: Option<Drained>,
    next: u64,
}

/// Who waits for the report.
#[derive(Debug)]
struct Caller {
    key: u64,
    inside: Inside,
    thread: thread::ThreadId,
}

impl Parting {
    pub(super) fn new() -> Self {
        Self { book: Mutex::new(Book::default()), told: Event::new() }
    }

    /// Whether the task, by what its waker points to, is not to be cancelled yet.
    fn keeps(&self, task: usize) -> bool {
        let book = sync::lock(&self.book);
        !book.is_over && book.callers.iter().any(|caller| caller.inside == Inside::Task(task))
    }

    /// Whether there are such tasks.
    fn keeps_any(&self) -> bool {
        let book = sync::lock(&self.book);
        !book.is_over && book.callers.iter().any(|caller| matches!(caller.inside, Inside::Task(_)))
    }

    /// Threads that wait for the report, in tasks that wait for them.
    fn excused(&self) -> Vec<thread::ThreadId> {
        let book = sync::lock(&self.book);
        let below = book.callers.iter().filter(|caller| matches!(caller.inside, Inside::Below(_)));
        below.map(|caller| caller.thread).collect()
    }

    fn report(&self) -> Option<Drained> {
        sync::lock(&self.book).report.clone()
    }
}

impl Book {
    /// Tasks that wait for the report, each counted once.
    fn insiders(&self) -> usize {
        let mut seen = Vec::new();
        let count = |caller: &Caller| {
            let (key, tasks) = match caller.inside {
                Inside::Nothing => return 0,
                Inside::Task(task) => ((Some(task), None), 1),
                Inside::Below(tasks) => ((None, Some(caller.thread)), tasks),
            };
            if seen.contains(&key) {
                return 0;
            }
            seen.push(key);
            tasks
        };
        self.callers.iter().map(count).sum()
    }
}

/// One who waits for the report, until it is dropped.
struct Waiting<'a> {
    crew: &'a Crew,
    key: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut book = sync::lock(&self.crew.parting.book);
        book.callers.retain(|caller| caller.key != self.key);
        self.crew.state().is_enough(book.insiders());
    }
}

impl Pool {
    /// Ends the crew, and reports. The first poll begins it, and it goes on if this is dropped.
    pub(crate) async fn drain(self: Arc<Self>, deadline: Option<Instant>) -> Drained {
        let Some(crew) = self.crew().filter(|_| !self.is_inherited()) else { return Drained::default() };
        let _waiting = crew.takes_part(&self, deadline);
        loop {
            let told = crew.parting.told.listen();
            if let Some(report) = crew.parting.report() {
                return report;
            }
            told.await;
        }
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

    /// One more waits for the report; the first one begins it.
    fn takes_part<'a>(self: &'a Arc<Self>, pool: &Arc<Pool>, deadline: Option<Instant>) -> Waiting<'a> {
        super::crew::will_stop();
        self.closed.set(true);
        let inside = self.state().is_on_stack();
        let (key, begins) = {
            let mut book = sync::lock(&self.parting.book);
            book.next += 1;
            let key = book.next;
            book.callers.push(Caller { key, inside, thread: thread::current().id() });
            let begins = !std::mem::replace(&mut book.has_begun, true);
            book.deadline = match (book.deadline, deadline) {
                (Some(known), Some(asked)) => Some(known.min(asked)),
                (None, asked) if begins => asked,
                (known, asked) => known.or(asked),
            };
            if begins {
                let tasks = self.state().unfinished();
                book.at_first = tasks.unwrap_or(0);
                book.cut_short = tasks.filter(|_| book.is_stopped);
            }
            self.state().is_enough(book.insiders());
            (key, begins)
        };
        if begins {
            let (crew, its_pool) = (self.clone(), pool.clone());
            let name = format!("{}-drain", self.name());
            let started = thread::Builder::new().name(name).spawn(move || crew.conduct(&its_pool, None));
            if started.is_err() {
                // This thread waits in the middle of a poll then, but not without a bound.
                self.conduct(pool, Some(thread::current().id()));
            }
        }
        Waiting { crew: self, key }
    }

    /// Somebody stops the workers, and cancels the tasks: there is nothing to wait for.
    pub(super) fn cuts_short(&self) {
        let mut book = sync::lock(&self.parting.book);
        book.is_stopped = true;
        if book.has_begun && book.cut_short.is_none() {
            book.cut_short = self.state().unfinished();
            self.state().is_enough(book.insiders());
        }
    }

    /// Cancels all tasks of a crew that was stopped, but those that are being polled, and those that wait for the report.
    pub(crate) fn cancel_all(&self, pool: &Arc<Pool>) {
        let state = self.state();
        pool.visit(|| {
            if self.parting.keeps_any() {
                state.cancel_all_but(|task| self.parting.keeps(task));
            } else if self.live() == 0 {
                state.cancel_to_the_last();
            } else {
                state.cancel_all();
            }
        });
    }

    /// From the wait to the last ones. `here` is the thread, if it is not one of its own.
    fn conduct(self: &Arc<Self>, pool: &Arc<Pool>, here: Option<thread::ThreadId>) {
        let state = self.state();
        let began = Instant::now();
        let left = self.waits_for_tasks();
        // Before the workers stop, after which nobody is hired.
        let is_helped = left > 0 && matches!(self.hire(pool, usize::MAX, false), Ok(true));
        self.halt();
        let late = self.wait_for_all_but(here, || self.parting.excused(), Instant::now() + GRACE);
        if !is_helped {
            self.cancel_all(pool);
        }
        let stuck = super::stuck::busy(pool, &late);
        {
            let mut book = sync::lock(&self.parting.book);
            let insiders = book.insiders();
            let still = state.unfinished().unwrap_or(0).saturating_sub(insiders);
            book.report = Some(Drained {
                finished: book.at_first.saturating_sub(insiders + left),
                cancelled: left.saturating_sub(still),
                stuck,
                took: began.elapsed(),
            });
        }
        self.parting.told.notify(usize::MAX);
        let limit = Instant::now() + LAST_ONES;
        while self.parting.keeps_any() && Instant::now() < limit {
            let last_ones = || pool.visit(|| state.see_off(|task| self.parting.keeps(task), limit));
            // A panic out of a waker has said so.
            let _ = catch_unwind(AssertUnwindSafe(last_ones));
            if self.parting.keeps_any() {
                // Somebody polls it right now, or has it aside because he cancels the others.
                sync::park_until(Some(Instant::now() + ASIDE));
            }
        }
        sync::lock(&self.parting.book).is_over = true;
        self.cancel_all(pool);
    }

    /// Waits until no task is left but those that wait for the report, or until the deadline. Returns how many others are.
    fn waits_for_tasks(&self) -> usize {
        let state = self.state();
        state.watch_ends();
        let left = loop {
            // What was announced by the token that ended the last wait is seen.
            sync::full_fence();
            let now = state.unfinished().unwrap_or(0);
            // After the count: whoever cuts it short says how many there were before he cancels any.
            let (insiders, deadline, cut_short) = {
                let book = sync::lock(&self.parting.book);
                (book.insiders(), book.deadline, book.cut_short)
            };
            let left = cut_short.unwrap_or(now).saturating_sub(insiders);
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if left == 0 || is_over || cut_short.is_some() {
                break left;
            }
            sync::park_until(deadline);
        };
        state.look_away();
        left
    }
}
