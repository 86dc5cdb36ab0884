//! [`Audit`]: the deputy's looks. Each one observes the pool, decides what to do, and does it.
//!
//! | part | what it does |
//! |---|---|
//! | [`observe`](super::observe) | takes a snapshot of the threads, leadership and the queues |
//! | [`decide`](mod@super::decide) | decides by a table of rules |
//! | [`act`](mod@super::act) | carries out the decision |
//! | [`rest`] | decides when the deputy may look less often although threads are awake |

mod rest;

use std::sync::Arc;
use std::time::Duration;

use super::act::{self, act};
use super::decide::{Memory, decide};
use super::observe::Observer;
use crate::pool::Pool;
use crate::sync::Instant;

/// State that the deputy keeps from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Audit {
    looked: Option<Instant>,
    observer: Observer,
    memory: Memory,
    /// For how long the deputy may rest, if it may.
    rest: Option<Duration>,
}

impl Audit {
    /// Forgets the last look, the state of the rules and the rest, which are out of date after the deputy has
    /// slept.
    pub(super) fn forget(&mut self) {
        self.observer.forget();
        self.memory.forget();
        self.rest = None;
    }

    /// Makes one look. Returns true if the deputy may sleep: there was nothing to watch, and no rule waits
    /// for a later look. `help` is true if a leader that is about to block wants a successor at once. If no
    /// follower can lead, and too few workers would be left to run, this starts a worker, unless the pool has
    /// no workers.
    pub(super) fn look(&mut self, pool: &Arc<Pool>, help: bool) -> bool {
        let is_uncovered = help && pool.leadership.is_vacant() && !pool.leadership.rescue();
        let may_sleep = self.look_unless_just_done(pool);
        // After the look: workers that blocked at the last one may be back.
        let crew = pool.workforce().filter(|_| is_uncovered);
        if crew.is_some_and(|crew| self.memory.count_blocked(crew.live(), crew.config.threads)) {
            act::add_thread(pool, 0);
        }
        may_sleep
    }

    /// Looks, and returns what [`look`](Self::look) returns. Always looks at a quiet pool. If the pool is
    /// not quiet, was not quiet at a look less than half a tick ago, and the deputy has not slept or rested
    /// since, observes nothing, ends the rest, and returns false.
    fn look_unless_just_done(&mut self, pool: &Arc<Pool>) -> bool {
        let now = Instant::now();
        let is_quiet = pool.is_quiet();
        // The deputy was called between two ticks, so no thread had the time to keep a promise since the last
        // look.
        let soon = self.looked.is_some_and(|last| now - last < pool.deputy.tick() / 2);
        if soon && !is_quiet && self.observer.has_looked() {
            self.rest = None;
            return false;
        }
        let (seen, scene) = self.observer.look(pool, is_quiet, now);
        let actions = decide(&seen, &mut self.memory);
        act(pool, &scene, &mut self.observer.progress, &actions);
        self.rest = actions.rest;
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
