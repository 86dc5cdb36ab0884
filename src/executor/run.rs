//! [`Run`]: the future behind `Executor::run`. It polls the executor's tasks until its own future is done.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use async_task::Runnable;
use pin_project_lite::pin_project;

use super::host::{self, BUDGET_ALONE, Host, Hosted};
use super::runner::Runner;
use super::sleeper::Sleeper;
use super::state::{State, StateRef};
use super::turns::{ROUND, Turns};
use crate::fork::Origin;
use crate::frame::{self, Here};
use crate::sync::{self, Instant};

pin_project! {
    /// Runs an executor's tasks until `future` is done.
    pub(crate) struct Run<F> {
        #[pin]
        future: F,
        member: Member,
    }
}

/// Tasks of a round at least, however long they take.
const FEWEST: u32 = 4;
/// A [`Run`] as a member of its executor; dropping it gives its tasks back.
struct Member {
    /// Its runner, and the executor.
    own: Hosted,
    /// The runner as the waker of the future inside.
    inner: Waker,
    /// The waker that the sleeper has.
    outer: Option<Waker>,
    /// The address of the host, or 0 where somebody else polls it.
    host: usize,
    turns: Turns,
    pace: Pace,
}

/// How many tasks make a round. Learned from the last one, with two readings of the clock for each that was full: a runner
/// that runs out of tasks reads none.
struct Pace {
    tasks: u32,
    /// The last round was full, so the next one will be, most likely: it is timed.
    is_full: bool,
}

impl<F: Future> Run<F> {
    pub(crate) fn new(state: StateRef, future: F) -> Self {
        Self { future, member: Member::new(state) }
    }

    /// The same, as the reserve: see [`Runner::is_reserve`].
    pub(crate) fn reserve(state: StateRef, future: F) -> Self {
        let run = Self::new(state, future);
        run.member.own.runner.set_reserve(true);
        run
    }
}

impl<F: Future> Future for Run<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        frame::here(|here| this.member.poll(here, this.future, cx))
    }
}

/// As a waker, a runner wakes the future that `run` drives: only that, so that a task woken on this thread does not
/// make the future be polled in vain.
impl Wake for Runner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.root_woken.set(true);
        // On this thread and being polled: `run` looks at the flag between two tasks.
        let polled_here = host::with_running(|runner| runner.is_some_and(|runner| ptr::eq(runner, &**self)));
        if !polled_here {
            self.sleeper.wake();
        }
    }
}

impl Member {
    fn new(state: StateRef) -> Self {
        let runner = state.join();
        let inner = Waker::from(runner.clone());
        Self {
            own: Hosted { state, runner },
            inner,
            outer: None,
            host: 0,
            turns: Turns::new(),
            pace: Pace { tasks: BUDGET_ALONE, is_full: false },
        }
    }

    fn poll<F: Future>(
        &mut self,
        here: &Here,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let budget = self.enter(host::top(here), cx.waker()).min(self.pace.tasks);
        let is_hosted = self.host != 0;
        let Self { own, inner, turns, pace, .. } = self;
        let Hosted { state, runner } = &*own;
        let runner: &Runner = runner;
        turns.round_begins();
        let _poll = host::OnStack::begin(here, runner, budget);
        let process = Origin::of_this_call();
        let began = pace.begin();
        loop {
            let mut looks_up = false;
            if runner.root_woken.take() {
                looks_up = runner.is_to_look_up();
                let mut inner = Context::from_waker(inner);
                if let Poll::Ready(output) = future.as_mut().poll(&mut inner) {
                    return Poll::Ready(output);
                }
            }
            if looks_up || !here.may_run() {
                process.assert_here();
                turns.round_ends(runner);
                pace.round_ends(began.filter(|_| !looks_up), budget);
                // There may be more: after a look at the reactor it goes on.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match turns.next(state, runner, is_hosted) {
                Some(task) => runner.run(task),
                None => ready!(out_of_tasks(state, runner, is_hosted)),
            }
        }
    }

    /// It is polled. Returns how many tasks it may poll in one go.
    #[inline]
    fn enter(&mut self, host: Option<&Host>, waker: &Waker) -> u32 {
        let address = host.map_or(0, Host::address);
        let is_known = self.outer.as_ref().is_some_and(|outer| outer.will_wake(waker));
        let has_left = || self.own.runner.left.is_set();
        if !is_known || address == 0 || address != self.host || has_left() {
            self.settle(host, waker);
        }
        let Hosted { state, runner } = &self.own;
        runner.asked.take();
        state.rise(runner);
        let Some(host) = host else { return BUDGET_ALONE };
        if self.host != 0 {
            host.polls(runner);
        }
        host.budget()
    }

    /// It was not polled in this way before, or is polled by a stranger.
    #[cold]
    fn settle(&mut self, host: Option<&Host>, waker: &Waker) {
        let address = host.map_or(0, Host::address);
        if self.own.runner.left.is_set() || self.host != 0 && self.host != address {
            self.renew();
        }
        let Hosted { state, runner } = &self.own;
        let hosted = host.is_some_and(|host| host.adopts(state, runner, waker));
        if !hosted {
            host::stranger_on_top(waker);
            if self.host != 0 {
                // In the same `block_on`, but polled by somebody else now.
                self.renew();
            }
        }
        self.host = if hosted { address } else { 0 };
        if !self.outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
            self.outer = Some(waker.clone());
            self.own.runner.sleeper.set_waker(waker, hosted);
        }
        self.own.state.has_strangers();
    }

    /// The future was moved to another `block_on`. The one it comes from may still feed its runner, but would wake
    /// nobody to poll it there: so that runner is left there, and there is a new one.
    #[cold]
    fn renew(&mut self) {
        drop(mem::replace(self, Self::new(self.own.state.clone())));
    }
}

impl Pace {
    /// When the round began, if it is timed.
    #[inline]
    fn begin(&mut self) -> Option<Instant> {
        mem::take(&mut self.is_full).then(Instant::now)
    }

    /// A round of so many tasks is over, and there may be more.
    #[cold]
    fn round_ends(&mut self, began: Option<Instant>, tasks: u32) {
        self.is_full = true;
        if let Some(began) = began {
            let each = began.elapsed() / tasks.max(1);
            let fit = ROUND.as_nanos() / each.as_nanos().max(1);
            self.tasks = u32::try_from(fit).unwrap_or(u32::MAX).clamp(FEWEST, BUDGET_ALONE);
        }
    }
}

/// `Pending` if there is nothing to do. A `block_on` that hosts the runner says so to the executor when it is
/// about to sleep; anybody else's executor may sleep at once.
fn out_of_tasks(state: &State, runner: &Runner, is_hosted: bool) -> Poll<()> {
    if is_hosted || state.rest(runner) {
        return Poll::Pending;
    }
    // What the runner asked for is happening: it is polled on.
    runner.asked.set(false);
    Poll::Ready(())
}

impl Drop for Member {
    fn drop(&mut self) {
        host::forget(self.host, &self.own);
    }
}

/// Runs one task of `state`, waiting for one if there is none.
pub(super) async fn tick(state: &State) {
    let mut ticker = Ticker { state, sleeper: None, rests: false };
    let task = std::future::poll_fn(|cx| ticker.poll(cx.waker())).await;
    drop(ticker);
    host::run_beside(task);
}

/// A `tick` in progress.
struct Ticker<'a> {
    state: &'a State,
    /// Once there was nothing to run.
    sleeper: Option<sync::Arc<Sleeper>>,
    rests: bool,
}

impl Ticker<'_> {
    fn poll(&mut self, waker: &Waker) -> Poll<Runnable> {
        let _ = self.rise();
        if let Some(task) = self.state.any_task() {
            return Poll::Ready(task);
        }
        let sleeper = self.sleeper.get_or_insert_with(|| {
            self.state.tickers.add();
            sync::Arc::new(Sleeper::new(false))
        });
        host::stranger_on_top(waker);
        sleeper.set_waker(waker, false);
        self.state.has_strangers();
        self.state.idle.enter(sleeper, sleeper.rank());
        self.rests = true;
        match self.state.any_task() {
            Some(task) => Poll::Ready(task),
            None => Poll::Pending,
        }
    }

    /// It is awake. True if it was called.
    fn rise(&mut self) -> bool {
        let rested = mem::take(&mut self.rests);
        self.sleeper.as_ref().is_some_and(|sleeper| rested && self.state.idle.leave(sleeper))
    }
}

impl Drop for Ticker<'_> {
    fn drop(&mut self) {
        let called = self.rise();
        if self.sleeper.is_some() {
            self.state.tickers.remove();
            self.state.alarms.call();
        }
        // Whoever took a task out of several, or was called and comes no more, lets somebody else have the next.
        if called || self.state.has_surplus() {
            self.state.notify();
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

// Not for miri: its clock runs with its steps, and what is left in an executor that nobody runs is a leak to it.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
