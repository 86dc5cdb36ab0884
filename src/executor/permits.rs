//! [`Permits`]: how many workers may take tasks from an executor's queues at the same time.
//!
//! While all workers of a runtime of T workers compute, the runtime has one thread more, for tasks that
//! events wake. Any of these threads may be the spare one. If the spare thread took waiting tasks, it would
//! soon compute as well, and no thread would lead. So while threads are scarce, a worker needs a permit to
//! take a task from the injector or from another runner, and returns the permit after the poll. A worker
//! without a permit polls the tasks that its own thread woke, in its slot and its ring, except tasks that
//! are known to compute, and sifts the injector if the deputy wakes it for that.
//!
//! # States
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `limit` | the deputy, an absolute number, if it changes | number of permits; `MAX`: none is needed |
//! | `held` | [`acquire`](Permits::acquire), and the drop of a [`Permit`] | number of permits in use |
//! | `holds` of a runner | its own thread, together with `held` | whether its poll has a permit |
//!
//! The deputy's limit is `T + extra + (holders that block) - (workers that compute without a permit)`, and
//! not below zero. Threads that block are replaced, so a holder that blocks makes room for another one. A
//! worker computes without a permit if it took its task while permits were not needed, or if an event woke
//! a task that was not known to compute; it counts as if it had one. A worker that makes no progress in its
//! poll, because it has no core or dozes, counts as one that computes: it may compute once it has a core. So
//! T + extra workers compute, and not more, as of the next look. The limit may fall below `held`: then no
//! permit is given until enough are returned.
//!
//! Only the deputy of a runtime with workers writes the limit. For a `LocalExecutor`, an executor that a user
//! runs and a runtime of the current thread it is `MAX` for ever, which costs them one relaxed load where a
//! runner looks for surplus. The deputy sets it to `MAX` when it finds no spare worker any more or the
//! pool stopped, and before it ends. Code that cancels tasks takes them without a permit.
//!
//! # No wake-up is lost
//!
//! A task waits in the injector, a permit is free, and a worker sleeps: some thread sees to it. There are
//! four ways to get there, and each one is a Dekker handshake. The side that sleeps enters the line of idle
//! runners, passes the line's fence, and then asks whether a task waits and a permit is free
//! (`State::has_tasks_for`).
//!
//! - *A task comes.* Its thread pushes it, passes a fence, and calls a sleeper unless all permits are in use
//!   (`State::notify`). If they are, then each holder returns its permit after that fence.
//! - *A permit is returned.* Its worker does not call: it takes the next task itself, or passes the line's
//!   fence on its way to sleep and then looks at the queue, where it sees the task. If its runner is dropped,
//!   `State::leave` notifies.
//! - *The limit is raised.* `State::set_limit` writes it, passes a fence and looks at the queue. A thread
//!   that still saw the old limit pushed its task before that. The worker that is called calls the next one
//!   while tasks and permits are left (`share_all`).
//! - *A worker that was called gets no permit.* The permit that was free is in use, so the second case holds.
//!
//! Three cases that no handshake covers are left to the deputy: a worker that returned its permit and then
//! blocks in a task of its slot (row 4 of `pool/README.md`), a holder that blocks or computes (row 6), and
//! tasks in the ring of a stuck worker (row 8).

use std::sync::atomic::Ordering::Relaxed;

use crate::sync::{AtomicUsize, Flag};

/// The permits of one executor.
#[derive(Debug)]
pub(super) struct Permits {
    limit: AtomicUsize,
    held: AtomicUsize,
}

/// A permit in use. The drop returns the permit.
#[derive(Debug)]
#[must_use]
pub(super) struct Permit<'a> {
    permits: &'a Permits,
    holds: &'a Flag,
}

impl Permits {
    /// Creates permits without a limit: none is needed.
    pub(super) fn new() -> Self {
        Self { limit: AtomicUsize::new(usize::MAX), held: AtomicUsize::new(0) }
    }

    /// Returns whether a worker needs a permit to take a task from a queue.
    #[inline]
    pub(super) fn is_scarce(&self) -> bool {
        self.limit() != usize::MAX
    }

    /// Returns how many there are; `MAX` if none is needed.
    #[inline]
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Returns whether a worker that asked now would get one.
    pub(super) fn is_free(&self) -> bool {
        self.held.load(Relaxed) < self.limit()
    }

    /// Takes a permit for the next poll of the runner that has the flag `holds`, if one is free. Called by
    /// that runner's own thread, outside of any other poll with a permit.
    pub(super) fn acquire<'a>(&'a self, holds: &'a Flag) -> Option<Permit<'a>> {
        let mut held = self.held.load(Relaxed);
        // A compare-exchange: an addition that is undone at the limit would make other workers fail
        // meanwhile.
        while held < self.limit() {
            // ORDER: Relaxed. The fences of the line of idle runners order permits and tasks: see above.
            match self.held.compare_exchange(held, held + 1, Relaxed, Relaxed) {
                Ok(_) => {
                    holds.set(true);
                    return Some(Permit { permits: self, holds });
                }
                Err(now) => held = now,
            }
        }
        None
    }

    /// Sets the limit. Returns true if it was lower: then the caller passes a fence, and calls a sleeper if
    /// tasks wait. Called by the deputy only.
    pub(super) fn set_limit(&self, limit: usize) -> bool {
        let before = self.limit();
        self.limit.store(limit, Relaxed);
        before < limit
    }
}

impl Drop for Permit<'_> {
    /// Returns the permit, and wakes no runner for it.
    fn drop(&mut self) {
        self.holds.set(false);
        self.permits.held.fetch_sub(1, Relaxed);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_given_as_the_limit_says() {
        let (permits, flags) = (Permits::new(), [(); 3].map(|()| Flag::new(false)));
        assert!(!permits.is_scarce() && permits.is_free());
        assert!(!permits.set_limit(1));
        let first = permits.acquire(&flags[0]).expect("it is free");
        assert!(permits.is_scarce() && !permits.is_free() && flags[0].is_set());
        assert!(permits.acquire(&flags[1]).is_none() && !flags[1].is_set());
        assert!(permits.set_limit(2));
        let second = permits.acquire(&flags[1]).expect("the limit was raised");
        // The limit may fall below what is in use.
        assert!(!permits.set_limit(1));
        drop(first);
        assert!(!flags[0].is_set() && permits.acquire(&flags[2]).is_none());
        drop(second);
        assert!(permits.is_free() && permits.acquire(&flags[2]).is_some());
        assert!(permits.set_limit(usize::MAX) && !permits.is_scarce());
    }
}
