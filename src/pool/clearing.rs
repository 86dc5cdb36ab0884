//! The end of a runtime on its crew's threads: they stop, and drop the tasks that are left.
//!
//! The layer `end` says when, and hires further threads for it if all threads of the crew are stuck.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::crew::Roll;
use super::{Crew, Pool};
use crate::ambient;
use crate::probe::KnownThread;
use crate::sync::{Instant, thread};
use crate::waking;

impl Crew {
    /// Returns whether tasks are not accepted any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.parting.is_closed()
    }

    /// Returns whether a crew that is closed takes tasks from the calling thread all the same: in one of
    /// its own tasks, until the crew is stopped. The end waits for that task, which is not finished, and
    /// then for the tasks that it has spawned.
    #[cold]
    pub(crate) fn accepts_from_here(&self) -> bool {
        !self.is_stopped() && self.state().is_in_task()
    }

    /// Returns whether the workers are to stop after the polls that they are in.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.parting.is_stopped()
    }

    /// Returns whether the report of a drain is out.
    pub(crate) fn is_drained(&self) -> bool {
        self.parting.is_reported()
    }

    /// Has all workers stop after the polls that they are in. Wakes those that sleep, and waits for none.
    pub(crate) fn halt(&self) {
        self.parting.stop();
        self.stop.notify(usize::MAX);
    }

    /// Cancels all tasks of a crew that was stopped, except those that a thread polls. If no worker and no
    /// hand is left, the call also waits for tasks that are just being scheduled, for [a limited
    /// time](crate::executor::State::cancel_to_the_last). Runs destructors, which may block.
    pub(crate) fn cancel_all(&self, pool: &Arc<Pool>) {
        let state = self.state();
        let _here = CancelGuard::begin(self);
        pool.visit(|| if self.live() == 0 { state.cancel_to_the_last() } else { state.cancel_all() });
    }

    /// Drops the closures that block and will never begin, then [cancels all tasks](Self::cancel_all). The
    /// closures come first, because a worker may wait for one of them and hold what a task's destructor
    /// needs.
    pub(crate) fn clear_up(&self, pool: &Arc<Pool>) {
        pool.visit(|| {
            if let Some(blocking) = pool.blocking_if_any() {
                blocking.drop_doomed();
            }
        });
        self.cancel_all(pool);
    }

    /// Starts a hand: a thread that clears up as [`clear_up`](Self::clear_up) does, and then
    /// ends. A hand is no worker: it calls no hooks. Returns false if no thread can be started.
    pub(crate) fn hire_hand(self: &Arc<Self>, pool: &Arc<Pool>) -> bool {
        let mut builder = thread::Builder::new().name(format!("{}-end", self.config.name));
        if let Some(size) = self.config.stack_size {
            builder = builder.stack_size(size);
        }
        self.roll().hands_coming += 1;
        let (mut hand, pool) = (Hand { crew: self.clone(), known: None }, pool.clone());
        builder.spawn(move || hand.work(&pool)).is_ok()
    }

    /// Returns the hands, and other threads that cancel tasks but are no workers; and how many hands have not
    /// even started.
    pub(crate) fn hands(&self) -> (Vec<KnownThread>, usize) {
        let roll = self.roll();
        (roll.hands.iter().chain(&roll.cancelling).cloned().collect(), roll.hands_coming)
    }

    /// Returns the workers that have not stopped, the hands, and other threads that cancel tasks; and how
    /// many workers and hands have not even started.
    pub(crate) fn not_gone(&self) -> (Vec<KnownThread>, usize) {
        let (mut all, coming) = self.hands();
        let roll = self.roll();
        all.extend_from_slice(&roll.threads);
        (all, coming + roll.live.saturating_sub(roll.threads.len()))
    }

    /// Waits until a worker or a hand is gone, but for `limit` at most; may return early. Does not park: a
    /// token may be for a `block_on` below on the caller's stack.
    pub(crate) fn wait_for_one(&self, limit: Duration) {
        drop(self.changed.wait_timeout(self.roll(), limit));
    }

    /// Waits until all workers are gone, except those that wait here themselves if the caller is a worker.
    /// Returns `None` then, or the workers that are late at the `deadline`. Of several workers that wait
    /// here, the first that finds no other left to wait for ends the wait of all.
    pub(crate) fn wait_for_the_others(&self, deadline: Option<Instant>) -> Option<Vec<thread::Thread>> {
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
            // No other stopper waits any longer: this thread goes on with its task.
            roll.stops += usize::from(late.is_none());
            drop(roll);
            self.changed.notify_all();
        }
        late
    }
}

impl Roll {
    fn has(&self, thread: thread::ThreadId) -> bool {
        self.threads.iter().any(|known| known.id() == thread)
    }

    /// Returns the workers that run, without the stoppers. After a [`halt`](Crew::halt), all of them are
    /// late.
    fn late(&self) -> Vec<thread::Thread> {
        let is_late = |known: &&KnownThread| !self.stoppers.contains(&known.id());
        self.threads.iter().filter(is_late).map(|known| known.thread.clone()).collect()
    }
}

/// A thread that was hired to clear up; the value exists before the thread does. Dropping it removes the
/// thread from the counts, however the thread ended.
struct Hand {
    crew: Arc<Crew>,
    /// `None` before the thread runs.
    known: Option<KnownThread>,
}

impl Hand {
    /// Runs the hand's thread: clears up and, if no worker and no other hand is left, cancels what is left
    /// once more.
    fn work(&mut self, pool: &Arc<Pool>) {
        ambient::move_in();
        let known = KnownThread::here();
        self.known = Some(known.clone());
        {
            let mut roll = self.crew.roll();
            roll.hands_coming -= 1;
            roll.hands.push(known.clone());
        }
        // The panic hook has reported a panic of a destructor.
        waking::call(|| self.crew.clear_up(pool));
        // The thread is on one of the two lists at each moment.
        let _here = {
            let mut roll = self.crew.roll();
            roll.hands.retain(|other| other.id() != known.id());
            roll.cancelling.push(known.clone());
            CancelGuard(&self.crew, Some(known.id()))
        };
        if self.crew.live() == 0 {
            // A worker that left meanwhile was not the last thread, so the hand does the last step.
            waking::call(|| self.crew.cancel_all(pool));
        }
    }
}

impl Drop for Hand {
    /// Removes the hand from the roll, or from the number of those that are to come, and wakes waiting
    /// threads.
    fn drop(&mut self) {
        let mut roll = self.crew.roll();
        match &self.known {
            None => roll.hands_coming -= 1,
            Some(known) => roll.hands.retain(|other| other.id() != known.id()),
        }
        drop(roll);
        self.crew.changed.notify_all();
    }
}

/// Lists a thread that is neither a worker nor a hand as one that cancels tasks, until the value is dropped.
struct CancelGuard<'a>(&'a Crew, Option<thread::ThreadId>);

impl<'a> CancelGuard<'a> {
    /// Lists the calling thread, unless it is a worker, a hand, or listed already: then the drop does
    /// nothing.
    fn begin(crew: &'a Crew) -> Self {
        let here = KnownThread::here();
        let mut roll = crew.roll();
        let others = roll.hands.iter().chain(&roll.cancelling);
        let is_known = roll.has(here.id()) || others.into_iter().any(|known| known.id() == here.id());
        let stranger = (!is_known).then(|| here.id());
        if stranger.is_some() {
            roll.cancelling.push(here);
        }
        Self(crew, stranger)
    }
}

impl Drop for CancelGuard<'_> {
    /// Takes the thread off the list, if this value stands for one there. Wakes no thread.
    fn drop(&mut self) {
        if let Some(stranger) = self.1 {
            let mut roll = self.0.roll();
            let at = roll.cancelling.iter().position(|known| known.id() == stranger);
            at.map(|at| roll.cancelling.swap_remove(at));
        }
    }
}
