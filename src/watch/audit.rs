//! [`Audit`]: the deputy's looks. Each one observes the pool, decides what to do, and does it.
//!
//! | part | what it does |
//! |---|---|
//! | [`observe`](super::observe) | takes a snapshot of the threads, leadership and the queues |
//! | [`decide`](mod@super::decide) | decides by a table of rules |
//! | [`act`](mod@super::act) | carries out the decision |
//!
//! # When nothing changes
//!
//! A thread may stay in one poll for good: in a prompt, in a computation, in a `block_on` of a future that
//! sleeps. A look each tick would cost some percent of a core and find each time what the last one did. So
//! after [`SAME`] such looks the deputy *rests*: it sleeps for some ticks, unless it is called. As when it
//! dozes, a thread that wakes up, enters or leaves calls it, and so does the first source or timer
//! (`pool/deputy/duty.rs`). The deputy looks a tick later then, and its first look compares with nothing.
//!
//! A stuck thread calls no deputy when its poll goes on. What it wakes, and what it blocks in next, is
//! noticed after the rest.

use std::sync::Arc;
use std::time::Duration;

use super::act::{self, act};
use super::decide::{Memory, decide};
use super::observe::Observer;
use crate::pool::{Pool, Station};
use crate::sync::Instant;

/// State that the deputy keeps from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Audit {
    looked: Option<Instant>,
    observer: Observer,
    memory: Memory,
    /// Looks in a row that found nothing new.
    same: u32,
}

/// Looks that find nothing new, after which the deputy rests; and again, after which it rests for longer.
const SAME: u32 = 64;
/// Ticks for which the deputy rests.
const RESTS: [u32; 2] = [8, 64];

impl Audit {
    /// Forgets the last look and the state of the rules, which are out of date after the deputy has slept.
    pub(super) fn forget(&mut self) {
        self.observer.forget();
        self.memory.forget();
        self.same = 0;
    }

    /// Forgets what is compared between two looks. Called after the deputy has rested.
    pub(super) fn forget_last_look(&mut self) {
        self.observer.forget_last_look();
        self.memory.forget();
    }

    /// Returns for how long the deputy may rest after the last look, if nothing has changed since; `None` if
    /// it may not.
    pub(super) fn rest(&self, pool: &Pool) -> Option<Duration> {
        let step = (self.same / SAME).checked_sub(1)? as usize;
        Some(RESTS[step.min(1)] * pool.deputy.tick)
    }

    /// Returns whether no task waits, a thread leads unless no source and no timer is registered, and all
    /// threads that are awake are where the last look found them: known to block or to compute, without
    /// tasks in their runners.
    pub(super) fn may_rest(&self, pool: &Pool) -> bool {
        let is_still = |station: &Arc<Station>| station.is_quiet() || self.observer.is_stuck(station);
        let is_led = !pool.leadership.is_vacant() || !pool.reactor.is_needed();
        is_led && pool.is_settled(is_still)
    }

    /// Makes one look. Returns true if the deputy may sleep: there was nothing to watch, and no rule waits
    /// for a later look. `help` is true if a leader that is about to block wants a successor at once. If no
    /// follower can lead, and too few workers would be left to run, this starts a worker, unless the pool has
    /// no workers.
    pub(super) fn look(&mut self, pool: &Arc<Pool>, help: bool) -> bool {
        let may_sleep = self.look_unless_just_done(pool);
        // After the look: workers that blocked at the last one may be back.
        if help {
            self.cover(pool);
        }
        may_sleep
    }

    /// Has another thread lead, unless one does: a follower or, if too few workers would be left, a new one.
    fn cover(&mut self, pool: &Arc<Pool>) {
        if !pool.leadership.is_vacant() || pool.leadership.rescue() {
            return;
        }
        let Some(crew) = pool.workforce() else { return };
        if self.memory.count_blocked(crew.live(), crew.config.threads) {
            act::add_worker(pool, false);
        }
    }

    /// Looks, and returns what [`look`](Self::look) returns. Always looks at a quiet pool. If the pool is
    /// not quiet, was not quiet at a look less than half a tick ago, and the deputy has not slept or rested
    /// since, observes nothing and returns false.
    fn look_unless_just_done(&mut self, pool: &Arc<Pool>) -> bool {
        let now = Instant::now();
        let is_quiet = pool.is_quiet();
        // The deputy was called between two ticks, so no thread had the time to keep a promise since the last
        // look.
        let soon = self.looked.is_some_and(|last| now - last < pool.deputy.tick / 2);
        if soon && !is_quiet && self.observer.taken.is_some() {
            self.same = 0;
            return false;
        }
        let (seen, scene) = self.observer.look(pool, is_quiet, now);
        let actions = decide(&seen, &mut self.memory);
        act(pool, &scene, &mut self.observer, &actions);
        self.same = if self.may_rest(pool) { self.same + 1 } else { 0 };
        if !is_quiet {
            self.looked = Some(now);
        }
        // A runner that sleeps beside tasks was woken, but may not run.
        !seen.is_open() && pool.is_quiet() && self.memory.may_sleep()
    }
}

// Not for miri, which does not report what a thread does.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
