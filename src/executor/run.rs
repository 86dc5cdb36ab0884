//! [`Run`]: the future behind `Executor::run`. It polls the executor's tasks until its own future is done.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::task::{Context, Poll, Waker, ready};

use async_task::Runnable;
use pin_project_lite::pin_project;

use super::hosting::{self, Home, Running};
use super::oversight;
use super::runner::Runner;
use super::sleepers::Sleeper;
use super::state::{State, StateRef};
use crate::fork::Origin;
use crate::sync;

/// Tasks polled directly one after the other before one of the surplus gets its turn (D3).
const STREAK: u32 = 32;
/// Every so many tasks the injector comes before the ring, which may never run empty.
const INJECTOR_TURN: u32 = 61;

pin_project! {
    /// Runs an executor's tasks until `future` is done.
    pub(crate) struct Run<F> {
        #[pin]
        future: F,
        seat: RunnerSeat,
    }
}

/// The runner of one [`Run`]; dropping it gives its tasks back to the executor.
struct RunnerSeat {
    state: StateRef,
    runner: Arc<Runner>,
    /// The runner as the waker of the future inside.
    inner: Waker,
    /// The waker that the sleeper has.
    outer: Option<Waker>,
    /// The thread whose frame hosts the runner.
    home: Option<usize>,
    turn: u32,
    streak: u32,
}

impl<F: Future> Run<F> {
    pub(crate) fn new(state: StateRef, future: F) -> Self {
        let (runner, inner) = new_runner(&state);
        Self {
            future,
            seat: RunnerSeat { state, runner, inner, outer: None, home: None, turn: 0, streak: 0 },
        }
    }
}

impl<F: Future> Future for Run<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let seat = this.seat;
        let home = seat.enter(cx.waker());
        let _running = Running::enter(&seat.runner);
        let mut budget = hosting::budget();
        // A forked child must not go on to tasks that its parent polls as well.
        let process = Origin::of_this_call();
        loop {
            let root_woken = &seat.runner.root_woken;
            if root_woken.load(Relaxed) && root_woken.swap(false, AcqRel) {
                let mut inner = Context::from_waker(&seat.inner);
                if let Poll::Ready(output) = this.future.as_mut().poll(&mut inner) {
                    return Poll::Ready(output);
                }
                process.assert_here();
            }
            if budget == 0 {
                // There may be more: after a look at the reactor it goes on.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            budget -= 1;
            match seat.next_task(home) {
                Some(task) => {
                    seat.runner.run(task);
                    process.assert_here();
                }
                None => ready!(seat.out_of_tasks(home)),
            }
        }
    }
}

fn new_runner(state: &StateRef) -> (Arc<Runner>, Waker) {
    let runner = Arc::new(Runner::new(state.clone()));
    state.join(&runner);
    (runner.clone(), Waker::from(runner))
}

impl RunnerSeat {
    #[inline]
    fn enter(&mut self, waker: &Waker) -> Home {
        let here = hosting::this_thread();
        if self.home.is_some_and(|home| home != here) || self.runner.is_closed() {
            self.move_house();
        }
        self.runner.is_polled();
        let home = hosting::host(&self.runner, waker);
        if home == Home::Nowhere {
            hosting::stranger_on_top(waker);
            self.state.overseer.call();
            if self.home.is_some() {
                // On the same thread, but polled by somebody else now.
                self.move_house();
            }
        }
        self.home = (home == Home::Here).then_some(here);
        if !self.outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
            self.outer = Some(waker.clone());
            self.runner.sleeper.set_waker(waker, home == Home::Here);
            oversight::joined(&self.state);
        }
        self.runner.rise();
        home
    }

    /// The future was moved to another thread. The one it comes from may still feed its runner, but would wake
    /// nobody to poll it there: so that runner is closed, and there is a new one.
    #[cold]
    fn move_house(&mut self) {
        let (runner, inner) = new_runner(&self.state);
        let old = std::mem::replace(&mut self.runner, runner);
        self.inner = inner;
        self.outer = None;
        self.state.leave(&old);
    }

    /// The task to poll next: directly, as long as there is one and it is not the others' turn; else surplus.
    #[inline]
    fn next_task(&mut self, home: Home) -> Option<Runnable> {
        self.turn = self.turn.wrapping_add(1);
        if self.streak < STREAK {
            if let Some(task) = self.runner.slot.take() {
                self.streak += 1;
                self.runner.counters.direct.add(1);
                return Some(task);
            }
        }
        self.streak = 0;
        self.next_surplus(home).or_else(|| {
            // The streak was over, but nobody else wants the turn.
            let task = self.runner.slot.take()?;
            self.runner.counters.direct.add(1);
            Some(task)
        })
    }

    #[inline]
    fn next_surplus(&self, home: Home) -> Option<Runnable> {
        let runner = &*self.runner;
        if runner.ring.is_empty() && !self.state.has_surplus() {
            // Looking into other runners takes a lock: only where nothing else is left to do.
            let searches = home == Home::Nowhere || runner.stops_searching();
            return if searches { self.steal() } else { None };
        }
        let from_ring = || runner.ring.pop().ok();
        let from_injector = || self.state.take_injected(runner);
        let task = if self.turn % INJECTOR_TURN == 0 {
            from_injector().or_else(from_ring)
        } else {
            from_ring().or_else(from_injector)
        }?;
        runner.counters.surplus.add(1);
        if runner.stops_searching() {
            self.share_all()
        } else {
            self.share()
        }
        Some(task)
    }

    #[cold]
    fn steal(&self) -> Option<Runnable> {
        let task = self.state.steal_for(&self.runner)?;
        self.runner.counters.stolen.add(1);
        self.share_all();
        Some(task)
    }

    /// More surplus than the task that is polled now: one more runner may come.
    #[inline]
    fn share(&self) {
        if !self.runner.ring.is_empty() || self.state.has_surplus() {
            self.state.sleepers.invite();
        }
    }

    /// The same for who was woken to look for tasks and found one: more may be left wherever it could have looked.
    #[cold]
    fn share_all(&self) {
        if self.state.has_tasks_for(&self.runner) {
            self.state.sleepers.notify();
        }
    }

    /// `Pending` if there is nothing to do. A `block_on` that hosts the runner says so to the executor when it is
    /// about to sleep; anybody else's executor may sleep at once.
    fn out_of_tasks(&self, home: Home) -> Poll<()> {
        if home == Home::Here || self.runner.rest() {
            return Poll::Pending;
        }
        // What the runner asked for is happening: it is polled on.
        self.runner.is_polled();
        Poll::Ready(())
    }
}

impl Drop for RunnerSeat {
    fn drop(&mut self) {
        hosting::forget(&self.runner);
        self.state.leave(&self.runner);
    }
}

/// Runs one task of `state`, waiting for one if there is none.
pub(super) async fn tick(state: &State) {
    let mut place = TickerPlace { state, sleeper: None };
    let task = std::future::poll_fn(|cx| place.poll(cx.waker())).await;
    drop(place);
    hosting::run_beside(task);
}

/// Where a `tick` in progress sleeps.
struct TickerPlace<'a> {
    state: &'a State,
    sleeper: Option<sync::Arc<Sleeper>>,
}

impl TickerPlace<'_> {
    fn poll(&mut self, waker: &Waker) -> Poll<Runnable> {
        let sleepers = &self.state.sleepers;
        if let Some(sleeper) = &self.sleeper {
            let _ = sleepers.rise(sleeper);
        }
        if let Some(task) = self.state.any_task() {
            return Poll::Ready(task);
        }
        let is_new = self.sleeper.is_none();
        let sleeper = self.sleeper.get_or_insert_with(|| {
            let sleeper = sync::Arc::new(Sleeper::new(false));
            self.state.join_sleepers(sleeper.clone());
            sleeper
        });
        hosting::stranger_on_top(waker);
        sleeper.set_waker(waker, false);
        if is_new {
            oversight::joined(self.state);
        }
        self.state.overseer.call();
        sleepers.rest(sleeper);
        match self.state.any_task() {
            Some(task) => {
                let _ = sleepers.rise(sleeper);
                Poll::Ready(task)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for TickerPlace<'_> {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            self.state.sleepers.leave(sleeper);
            self.state.overseer.call();
        }
        // Whoever took a task out of several lets somebody else have the next.
        if self.state.has_surplus() {
            self.state.sleepers.notify();
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
