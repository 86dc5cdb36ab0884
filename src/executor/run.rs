//! [`Run`]: the future behind `Executor::run`, which polls the executor's tasks until its own future is done.
//!
//! The `run` of a current-thread runtime polls tasks in the order in which they became ready. There is one
//! queue, the injector, and neither a direct slot nor a ring. So no task overtakes another one; the order
//! holds across threads, and also if the deputy intervenes because of a slow task. A round polls the root
//! future, if it was woken, and then [some](Turns) ready tasks. The thread polls the reactor
//! before each round, which also ends when the deputy looks, and all events that were fetched together wake
//! their tasks before the first of these tasks is polled. Programs that were written for tokio's
//! current-thread runtime may rely on this order without knowing it: for example, if a task opens a connection
//! for a pool while another task returns one.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use async_task::Runnable;
use pin_project_lite::pin_project;

use super::host::{self, Host, Hosted};
use super::member::{Member, out_of_tasks};
use super::runner::Runner;
use super::sleeper::Sleeper;
use super::state::{State, StateRef};
use super::turns::Turns;
use crate::budget;
use crate::fork::Origin;
use crate::sync;

pin_project! {
    /// Runs an executor's tasks until `future` is done.
    pub(crate) struct Run<F> {
        #[pin]
        future: F,
        member: Member,
        turns: Turns,
    }
}

impl<F: Future> Run<F> {
    /// Adds a runner to the executor at once; its tasks are polled when this future is.
    pub(crate) fn new(state: StateRef, future: F) -> Self {
        Self { future, member: Member::new(state), turns: Turns::new(false) }
    }

    /// Does the same for an executor that queues its tasks in order, and polls them in that order. Panics in
    /// a debug build for another executor.
    pub(crate) fn in_order(state: StateRef, future: F) -> Self {
        debug_assert!(state.keeps_order, "the tasks of this executor are not queued in order");
        Self { future, member: Member::new(state), turns: Turns::new(true) }
    }

    /// Makes its runner a [standby](Runner::is_standby).
    pub(crate) fn stand_by(&self) {
        self.member.own.runner.stands_by.set(true);
    }
}

impl<F: Future> Future for Run<F> {
    type Output = F::Output;

    /// Runs one round of tasks. Polls `future` in it only if that was woken: see [`run_round`].
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        host::here(|host| run_round(this.member, this.turns, host, this.future, cx))
    }
}

/// As a waker, a runner wakes the future that `run` drives. Tasks that are woken do not use this waker, so
/// they do not cause needless polls of that future.
impl Wake for Runner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Notes that the future was woken, and wakes the `run` unless this runner is polled at the top of this
    /// thread.
    fn wake_by_ref(self: &Arc<Self>) {
        self.orders.wake_root();
        // If the runner is being polled on this thread, `run` reads the flag between two tasks.
        let polled_here = host::with_running(|runner| runner.is_some_and(|runner| ptr::eq(runner, &**self)));
        if !polled_here {
            self.sleeper.wake();
        }
    }
}

/// Polls tasks, and before each of them the future of the `run` if it was woken; in order only before a round
/// of them. Returns when that future is done, when the round is over or when no task is left. A round is over
/// after so many tasks, and with the first one at whose end the deputy has looked. At the end of a
/// round it wakes the `run`, because more tasks may wait. In order, polls nothing, and wakes the `run`, if
/// fetched events have to wake their tasks first.
fn run_round<F: Future>(
    member: &mut Member,
    turns: &mut Turns,
    host: &Host,
    mut future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    let mut budget = member.enter(host, cx.waker());
    let is_hosted = member.is_hosted();
    let Member { own: Hosted { state, runner }, inner, .. } = &*member;
    let runner: &Runner = runner;
    if turns.in_order && is_hosted && host.events_wait.take() {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    let _poll = host::PollGuard::begin(host, runner);
    let origin = Origin::unwatched();
    if !is_hosted {
        turns.begin_unwatched_round();
    }
    loop {
        if runner.orders.take_root() {
            budget::refill();
            let mut inner = Context::from_waker(inner);
            if let Poll::Ready(output) = future.as_mut().poll(&mut inner) {
                return Poll::Ready(output);
            }
        }
        if runner.orders.take_tick() {
            turns.end_tick();
            // The task in the slot comes first: what the next event wakes finds the slot empty then, and does
            // not go behind the ring.
            budget = budget.min(u32::from(!runner.slot.is_empty()));
        }
        // In the child of a fork no further task runs: the parent polls the same tasks.
        let is_over = budget == 0 || !origin.is_here();
        if !is_over && turns.poll_next(state, runner, is_hosted) {
            budget -= 1;
            continue;
        }
        if is_over || turns.is_over {
            // There may be more tasks. The next round follows when the thread has polled the reactor.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if is_hosted {
            // It enters the executor's line of sleepers when its `block_on` is about to sleep.
            return Poll::Pending;
        }
        budget -= 1;
        ready!(out_of_tasks(state, runner));
    }
}

/// Runs one task of `state`, and waits for a task if there is none.
pub(super) async fn tick(state: &State) {
    let mut ticker = Ticker { state, sleeper: None, in_line: false };
    let task = std::future::poll_fn(|cx| ticker.poll(cx.waker())).await;
    drop(ticker);
    host::run_beside(task);
}

/// A `tick` in progress.
struct Ticker<'a> {
    state: &'a State,
    /// Created when there is no task to run.
    sleeper: Option<sync::Arc<Sleeper>>,
    /// Whether the sleeper may be in the line.
    in_line: bool,
}

impl Ticker<'_> {
    /// Takes a task. If there is none, enters the line, to be woken by `waker`, and looks once more.
    fn poll(&mut self, waker: &Waker) -> Poll<Runnable> {
        let _ = self.leave_line();
        if let Some(task) = self.state.any_task() {
            return Poll::Ready(task);
        }
        let sleeper = self.sleeper.get_or_insert_with(|| sync::Arc::new(Sleeper::new(false)));
        host::hand_over_under_stranger(waker);
        sleeper.set_waker(waker, false);
        self.state.idle.enter(sleeper, sleeper.rank());
        self.in_line = true;
        match self.state.any_task() {
            Some(task) => Poll::Ready(task),
            None => Poll::Pending,
        }
    }

    /// Takes the sleeper out of the line. Returns whether it was called.
    fn leave_line(&mut self) -> bool {
        let was_in_line = mem::take(&mut self.in_line);
        self.sleeper.as_ref().is_some_and(|sleeper| was_in_line && self.state.idle.leave(sleeper))
    }
}

impl Drop for Ticker<'_> {
    /// Leaves the line for good. Wakes another sleeper if tasks are left, or if this one was called.
    fn drop(&mut self) {
        let called = self.leave_line();
        // If this ticker took one of several tasks, or was called and takes none, another runner has to come.
        if called || self.state.has_queued() {
            self.state.notify();
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

// Not under miri: its clock advances with its steps, and it reports tasks that are left in an executor as
// leaks.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
