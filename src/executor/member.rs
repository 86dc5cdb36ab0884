//! [`Member`]: one `run` as a member of its executor, and of the `block_on` that hosts it.

use std::mem;
use std::task::{Poll, Waker};

use super::host::{self, Host, Hosted};
use super::idle::BeforeSleep;
use super::runner::Runner;
use super::state::{State, StateRef};
use crate::observed::unwrapped;
use crate::sync::Ordering;

/// The runner of a `run`, and the way in which that `run` is polled. Dropping a `Member` gives the runner's
/// tasks back to the executor.
pub(super) struct Member {
    /// The runner, and its executor.
    pub(super) own: Hosted,
    /// The waker of the future inside: the runner.
    pub(super) inner: Waker,
    /// The waker with which the `run` was polled last: the sleeper has a copy.
    outer: Option<Waker>,
    /// The [address](Host::address) of the host, or 0 while the `run` has none.
    host: usize,
}

impl Member {
    /// Adds a new runner to the executor. The runner has no host, and no task polls it, until the first
    /// [`enter`](Self::enter).
    pub(super) fn new(state: StateRef) -> Self {
        let runner = state.join();
        let inner = Waker::from(runner.clone());
        Self { own: Hosted { state, runner }, inner, outer: None, host: 0 }
    }

    #[inline]
    pub(super) fn is_hosted(&self) -> bool {
        self.host != 0
    }

    /// Begins a poll of the `run` with `waker` on this thread: adapts to them if they have changed, and takes
    /// the runner out of the line. Returns how many tasks that poll may run.
    #[inline]
    pub(super) fn enter(&mut self, host: &Host, waker: &Waker) -> u32 {
        let is_known = self.outer.as_ref().is_some_and(|outer| outer.will_wake(waker));
        let has_left = || self.own.runner.orders.has_left();
        if !is_known || self.host == 0 || self.host != host.address() || has_left() {
            self.settle(host, waker);
        }
        let Hosted { state, runner } = &self.own;
        runner.requested.set(false);
        state.leave_line(runner);
        if self.host != 0 {
            host.start_poll(runner);
        }
        host.budget()
    }

    /// Adapts to a new waker or host, or to the lack of a host. A runner that has left, or that another host
    /// has, is replaced by a [new one](Self::renew).
    #[cold]
    fn settle(&mut self, host: &Host, waker: &Waker) {
        if self.own.runner.orders.has_left() || self.host != 0 && self.host != host.address() {
            self.renew();
        }
        let Hosted { state, runner } = &self.own;
        let hosted = host.adopt(state, runner, waker);
        if !hosted {
            host::hand_over_under_stranger(waker);
            if self.host != 0 {
                // In the same `block_on` another future polls the `run` now.
                self.renew();
            }
        }
        self.host = if hosted { host.address() } else { 0 };
        self.own.runner.thread.store(host.thread(), Ordering::Relaxed);
        if !self.outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
            self.outer = Some(waker.clone());
            // A hosted sleeper is woken where no foreign code may run, so no subscriber is told.
            let waker = if hosted { unwrapped(waker) } else { waker };
            self.own.runner.sleeper.set_waker(waker, hosted);
        }
    }

    /// Replaces the runner, because the `run` has moved to another `block_on`. The old host may still put
    /// tasks into the old runner, and would wake nothing that polls them. So the old runner stays with the
    /// old host, which removes it.
    #[cold]
    fn renew(&mut self) {
        drop(mem::replace(self, Self::new(self.own.state.clone())));
    }
}

/// Puts a runner without a host into the executor's line of sleepers. Returns `Pending` if the `run` has to
/// wait, and `Ready` if it goes on with its poll, because a task has come.
pub(super) fn out_of_tasks(state: &State, runner: &Runner) -> Poll<()> {
    match state.enter_line(runner) {
        BeforeSleep::Sleeps => return Poll::Pending,
        BeforeSleep::LeavesTasks => {
            state.notify_or_start_errand();
            return Poll::Pending;
        }
        BeforeSleep::HasTasks => {}
    }
    // The runner asked to be polled, and this poll goes on.
    runner.requested.set(false);
    Poll::Ready(())
}

impl Drop for Member {
    fn drop(&mut self) {
        host::forget(self.host, &self.own);
    }
}
