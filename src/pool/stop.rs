//! How a crew stops: its workers are told, and waited for; in a task, too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::crew::Roll;
use super::drain::{ENOUGH, LOOK};
use super::patience::{GRACE, Patience, Who};
use super::stuck::busy;
use super::{Backstage, Crew, Pool, StuckThread};
use crate::sync::{self, Flag, Instant, Mutex, thread};

/// A runtime of this process was shut down.
static ANY_STOPPED: AtomicBool = AtomicBool::new(false);

/// A runtime is about to be.
pub(super) fn will_stop() {
    ANY_STOPPED.store(true, Relaxed);
}

/// What to say of a panic that comes from awaiting a task that was cancelled, if that may be because its runtime was shut
/// down. The task's own words are about something else.
pub(crate) fn explain(panic: &(dyn Any + Send)) -> Option<String> {
    let said =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let is_of_task =
        said.is_some_and(|said| said == "Task polled after completion") && ANY_STOPPED.load(Relaxed);
    is_of_task.then(|| {
        "a task was awaited that is no more: the runtime on which it was spawned was shut down (or it was polled after it \
         was done). `Task::fallible` gives `None` instead"
            .into()
    })
}

impl Crew {
    /// Has all workers stop after the poll they are in, waits for them until `deadline`, cancels the tasks, and what waits behind them.
    /// Returns the workers that are still busy. Called by a worker, it does not wait for that one, nor for others that call it.
    ///
    /// What is cancelled has destructors, and one that blocks does not block the caller.
    pub(crate) fn stop(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        deadline: Option<Instant>,
        backstage: &Arc<dyn Backstage>,
    ) -> Vec<StuckThread> {
        will_stop();
        self.cuts_short();
        self.halt();
        // After the workers were told: a task that waits for what is cancelled here is cancelled itself, and not polled once more.
        backstage.close();
        if backstage.laden() > 0 {
            let (its_pool, behind) = (pool.clone(), backstage.clone());
            self.has_done(move || its_pool.visit(|| behind.clear()), || backstage.laden());
        }
        let late = self.wait_for_the_others(deadline);
        // Those that block nobody need not wait for one that does; a task that runs is cancelled when its poll ends.
        let ended = || self.state().census().0;
        if self.state().census().1 > 0 {
            let (crew, its_pool) = (self.clone(), pool.clone());
            self.has_done(move || crew.cancel_all(&its_pool), ended);
        } else {
            self.cancel_all(pool);
        }
        late.map_or(Vec::new(), |late| busy(pool, &late))
    }

    /// Has a thread of its own do what runs destructors, and waits for it until it is done, or stuck: [`Patience`] with one that gets
    /// to another number. Where no thread is to be had, the caller does it.
    ///
    /// Not by parking: the caller's token may be somebody else's, in whose `block_on` he is.
    fn has_done(self: &Arc<Self>, what: impl FnOnce() + Clone + Send + 'static, got_to: impl Fn() -> usize) {
        let (who, done) = (Arc::new(Mutex::new(None)), Arc::new(Flag::new(false)));
        let does = {
            let (crew, who, done, what) = (self.clone(), who.clone(), done.clone(), what.clone());
            move || {
                let here = Who::here();
                *sync::lock(&who) = Some(here);
                // A panic of a destructor has said so.
                let _ = catch_unwind(AssertUnwindSafe(what));
                done.set(true);
                drop(crew.roll());
                crew.changed.notify_all();
            }
        };
        if thread::Builder::new().name(format!("{}-end", self.name())).spawn(does).is_err() {
            return what();
        }
        let (began, mut patience) = (Instant::now(), Patience::default());
        loop {
            let now = Instant::now();
            let known = sync::lock(&who).clone();
            let is_stuck = known.is_some_and(|who| patience.is_over(&who, got_to() as u64, GRACE, now));
            let roll = self.roll();
            if done.is_set() || is_stuck || now.saturating_duration_since(began) >= ENOUGH {
                return;
            }
            drop(self.changed.wait_timeout(roll, LOOK));
        }
    }

    /// Has all workers stop after the poll they are in.
    pub(super) fn halt(&self) {
        self.closed.set(true);
        self.stopped.set(true);
        self.stop.notify(usize::MAX);
    }

    /// Cancels all tasks of a crew that was stopped, but those that are being polled, and those that wait for the report of a drain.
    pub(super) fn cancel_all(&self, pool: &Arc<Pool>) {
        let state = self.state();
        let _here = Cancelling::begin(self);
        pool.visit(|| match self.parting.keeps_any() {
            Some(false) | None if self.live() == 0 => state.cancel_to_the_last(),
            // One may begin to wait for it at any moment.
            Some(_) => state.cancel_all_but(|task| self.parting.keeps(task)),
            None => state.cancel_all(),
        });
    }

    /// Threads that have not stopped, or cancel tasks; and how many have not even started.
    pub(super) fn not_gone(&self) -> (Vec<Who>, usize) {
        let roll = self.roll();
        let all = roll.threads.iter().chain(&roll.cancelling).cloned().collect();
        (all, roll.live.saturating_sub(roll.threads.len()))
    }

    /// Waits until somebody is gone, for so long at most.
    pub(super) fn wait_for_one(&self, limit: Duration) {
        let roll = self.roll();
        if roll.live > 0 {
            drop(self.changed.wait_timeout(roll, limit));
        } else {
            drop(roll);
            sync::park_until(Some(Instant::now() + limit));
        }
    }

    /// Waits until all workers are gone but those that wait here themselves, or until `deadline`; then returns who is
    /// late.
    fn wait_for_the_others(&self, deadline: Option<Instant>) -> Option<Vec<thread::Thread>> {
        let me = thread::current().id();
        let mut roll = self.roll();
        let is_worker = roll.has(me);
        if is_worker {
            roll.stoppers.push(me);
        }
        let stops = roll.stops;
        let late = loop {
            let excused = if is_worker { roll.stoppers.len() } else { 0 };
            if roll.live == excused || is_worker && roll.stops != stops {
                break None;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            roll = match left {
                Some(left) if left.is_zero() => break Some(roll.late()),
                Some(left) => self.changed.wait_timeout(roll, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(roll).unwrap_or_else(PoisonError::into_inner),
            };
        };
        if is_worker {
            roll.stoppers.retain(|stopper| *stopper != me);
            // The other stoppers are done waiting, too: for this thread, which goes on with its task, as well.
            roll.stops += usize::from(late.is_none());
            drop(roll);
            self.changed.notify_all();
        }
        late
    }
}

impl Roll {
    fn has(&self, thread: thread::ThreadId) -> bool {
        self.threads.iter().any(|who| who.id() == thread)
    }

    /// Those that were to stop and have not.
    fn late(&self) -> Vec<thread::Thread> {
        let is_late = |who: &&Who| !self.stoppers.contains(&who.id());
        self.threads.iter().filter(is_late).map(|who| who.thread.clone()).collect()
    }
}

/// A thread that is no worker cancels tasks, until this is dropped.
struct Cancelling<'a>(&'a Crew, Option<thread::ThreadId>);

impl<'a> Cancelling<'a> {
    fn begin(crew: &'a Crew) -> Self {
        let here = Who::here();
        let mut roll = crew.roll();
        let is_known = roll.has(here.id()) || roll.cancelling.iter().any(|who| who.id() == here.id());
        let stranger = (!is_known).then(|| here.id());
        if stranger.is_some() {
            roll.cancelling.push(here);
        }
        Self(crew, stranger)
    }
}

impl Drop for Cancelling<'_> {
    fn drop(&mut self) {
        if let Some(stranger) = self.1 {
            let mut roll = self.0.roll();
            let at = roll.cancelling.iter().position(|who| who.id() == stranger);
            at.map(|at| roll.cancelling.swap_remove(at));
        }
    }
}
