//! How long the deputy may rest although threads are awake: while each of these has been in one poll, or one
//! waker, for long.
//!
//! Such a thread may stay there for good: in a `block_on` of a future that sleeps, in a prompt, in a
//! computation. A look each tick would cost some percent of a core and would find each time what the last one
//! did. So the deputy sleeps for an eighth of the time for which the thread has been there, and for a tenth
//! of a second at most: what depends on that time (the next report of a stall, another thread beside those
//! that compute) is late by an eighth of it.
//!
//! **No promise is left unwatched meanwhile.** The code that makes one calls the deputy, which looks a tick
//! later, as when it dozes (`pool/deputy/duty.rs`). The promises, and what calls the deputy:
//!
//! - *Vacant leadership, of a thread that led.* That thread. A leader that sleeps calls when it wakes up; one
//!   that is awake has got further since the last look, so the deputy does not rest.
//! - *Leadership that was vacant already.* The deputy rests beside it only if nothing is registered. The
//!   first source or timer calls (`Reactor::find_leader`).
//! - *Whatever a thread promises that was asleep, enters or leaves.* That thread, when it wakes up, enters or
//!   leaves.
//! - *Tasks that wait in the injector.* A task is put there together with a wake-up of an idle runner, and
//!   the thread of that runner calls; if no runner is idle, `State::schedule_elsewhere` calls.
//! - *Tasks in the slot or ring of a stuck thread's runner.* There are none. The runner is
//!   [closed](crate::executor::Runner::set_closed), so that whatever the thread wakes goes to the injector.
//! - *Tasks that the thread moves into its own ring after the poll.* `State::move_some` calls, while the
//!   runner is closed.
//! - *A stuck thread's next poll.* Nothing, because it is no promise: slot and ring are empty, and another
//!   thread leads.
//! - *A wait on another thread.* Registering a source or a timer always calls the deputy.
//!
//! A runner is closed at one look, and rested beside after a later one that found the same poll, and nothing
//! in slot and ring. A thread that read the word before the closing, and has still not stored its task at
//! that later look, has had no core since: it does not count as one that blocks or computes.

use std::sync::Arc;
use std::time::Duration;

use super::Audit;
use crate::pool::{Pool, Station};

impl Audit {
    /// Returns for how long the deputy may rest after the last look, if nothing has changed since; `None` if
    /// it may not, as while a surplus worker is to be released.
    pub(in crate::watch) fn rest(&self) -> Option<Duration> {
        self.rest.filter(|_| self.memory.overstaffed.is_none())
    }

    /// Forgets what is compared between two looks. Called after the deputy has rested.
    pub(in crate::watch) fn forget_last_look(&mut self) {
        self.observer.forget_last_look();
        self.memory.forget_last_look();
    }

    /// Returns whether no task waits, a thread leads unless no source and no timer is registered, and all
    /// threads that are awake are where the last look found them: known to block or to compute, without
    /// tasks in their runners.
    pub(in crate::watch) fn may_rest(&self, pool: &Pool) -> bool {
        let is_stuck = |station: &Arc<Station>| self.observer.progress.stuck_since(station).is_some();
        let is_still =
            |station: &Arc<Station>| station.is_quiet() || is_stuck(station) && !has_tasks(station);
        let is_led = !pool.leadership.is_vacant() || !pool.reactor.is_needed();
        is_led && pool.is_settled(is_still)
    }
}

fn has_tasks(station: &Station) -> bool {
    station.runners.lock().iter().any(|hosted| hosted.runner.has_tasks())
}
