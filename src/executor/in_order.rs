//! [`RunInOrder`]: runs the tasks of a current-thread runtime in the order in which they became ready.
//!
//! There is one queue, the injector, and neither a direct slot nor a ring. So no task overtakes another
//! one; the order holds across threads, and also if the deputy intervenes because of a slow task. A round
//! polls the root future, if it was woken, and then up to [`TASKS`] ready tasks. The thread polls the
//! reactor before each round, and all events that were fetched together wake their tasks before the first
//! of these tasks is polled. Programs that were written for tokio's current-thread runtime may rely on this
//! order without knowing it: for example, if a task opens a connection for a pool while another task
//! returns one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_task::Runnable;
use pin_project_lite::pin_project;

use super::host::{self, Host, Hosted};
use super::member::{Member, out_of_tasks};
use super::runner::Runner;
use super::state::{State, StateRef};
use super::turns;
use crate::flight::FoundIn;
use crate::frame::{self, Here};

/// Upper bound of the tasks in a round. The thread polls the reactor, and the root future if it was woken,
/// before each round.
const TASKS: u32 = 61;

pin_project! {
    /// Runs an executor's tasks in order, until `future` is done.
    pub(crate) struct RunInOrder<F> {
        #[pin]
        future: F,
        member: Member,
    }
}

impl<F: Future> RunInOrder<F> {
    /// Adds a runner to the executor at once; its tasks are polled when this future is. Panics in a debug
    /// build if the executor does not queue its tasks in order.
    pub(crate) fn new(state: StateRef, future: F) -> Self {
        debug_assert!(state.keeps_order, "the tasks of this executor are not queued in order");
        Self { future, member: Member::new(state) }
    }
}

impl<F: Future> Future for RunInOrder<F> {
    type Output = F::Output;

    /// Runs one round of tasks. Polls `future` in it only if that was woken: see [`run_round`].
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        frame::here(|here| run_round(this.member, here, this.future, cx))
    }
}

/// Polls the root future if it was woken, and then tasks in order. Ends the round, and wakes the `run` for
/// the next one, when the budget is used up, when the deputy asks the thread to look at the reactor, or
/// when no task is left and the root future was woken again. If no task is left and the root future was not
/// woken, the `run` waits. Polls nothing, and wakes the `run`, if fetched events have to wake their tasks
/// first.
fn run_round<F: Future>(
    member: &mut Member,
    here: &Here,
    mut future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    let host = host::top(here);
    member.enter(host, cx.waker());
    let is_hosted = member.is_hosted();
    if is_hosted && host.is_some_and(Host::take_events_wait) {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    let Hosted { state, runner } = &member.own;
    let _poll = host::PollGuard::begin(here, runner.as_ref(), TASKS);
    if runner.orders.take_root() {
        let mut inner = Context::from_waker(&member.inner);
        if let Poll::Ready(output) = future.as_mut().poll(&mut inner) {
            return Poll::Ready(output);
        }
    }
    loop {
        let is_over = runner.orders.take_look_up() || !here.may_run();
        let task = if is_over { None } else { next(state, runner) };
        match task {
            Some(task) => runner.run(task),
            None if is_over || runner.orders.is_root_woken() => {
                // The thread polls the reactor before the next round.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => ready!(out_of_tasks(state, runner, is_hosted)),
        }
    }
}

/// Takes the oldest task of the injector; `None` if that is empty. If the runner was told to search, also
/// wakes a sleeper for the others.
fn next(state: &State, runner: &Runner) -> Option<Runnable> {
    let task = state.pop_injected()?;
    state.count_taken();
    runner.counters.found(FoundIn::Queue);
    // Another thread in a `block_on` of the same runtime may be stuck in a task, and this thread may be stuck
    // next: so a sleeping runner is woken for the remaining tasks.
    if runner.orders.take_search() {
        turns::share_all(state, runner);
    }
    Some(task)
}

// Not under miri, which reports tasks that are left in an executor as leaks.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
