//! No promotion and no wakeup is lost. The deputy, which would repair a loss, is switched off where
//! possible.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded, unbounded};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Executor, Runtime, Timer, block_on};

use crate::blocked_leader::soon;
use crate::setups::{
    Latch, OpenOnDrop, Ping, Setup, eventually, for_setups, pair, without_deputy, without_looks,
};

type Guests = Vec<(Sender<()>, thread::JoinHandle<()>)>;

/// Starts threads that take turns at leading beside the workers, each until it is told to leave.
fn company(runtime: &Arc<Runtime>, count: usize, last: fn()) -> Guests {
    let (ready, are_ready) = unbounded();
    let join = |_| {
        let (tell, told) = bounded::<()>(1);
        let (runtime, ready) = (runtime.clone(), ready.clone());
        let guest = thread::spawn(move || {
            let executor = Executor::new();
            runtime.block_on(executor.run(async {
                ready.send(()).await.unwrap();
                told.recv().await.unwrap();
                last();
            }));
        });
        (tell, guest)
    };
    let guests: Guests = (0..count).map(join).collect();
    (0..count).for_each(|_| are_ready.recv_blocking().unwrap());
    guests
}

/// Fails if a leaving thread does not pass leadership on: `pass_on` in `Follower::drop`.
#[test]
fn a_leader_that_leaves_while_others_wait_passes_leadership_on() {
    without_deputy(|_, runtime| {
        let mut ping = Ping::new(runtime);
        for (tell, guest) in company(runtime, 6, || {}) {
            ping.ping();
            tell.send_blocking(()).unwrap();
            guest.join().unwrap();
            ping.ping();
        }
    });
}

/// Every thread waits both for its turn to lead and for its own future. Fails if one token replaces the
/// other.
#[test]
fn a_thread_may_be_chosen_to_lead_as_its_future_becomes_ready() {
    const ROUNDS: usize = 60;
    async fn rounds(tell: Sender<usize>, told: Receiver<usize>) {
        let (mut one, mut other) = pair();
        for round in 0..ROUNDS {
            tell.send(round).await.unwrap();
            let got = future::zip(told.recv(), async {
                one.write_all(b"x").await.unwrap();
                other.read_exact(&mut [0]).await.unwrap();
            });
            assert_eq!(got.await.0.unwrap(), round);
        }
    }
    without_deputy(|_, runtime| {
        let mut ping = Ping::new(runtime);
        let mut threads = Vec::new();
        for _ in 0..2 {
            let (left, right) = (bounded(1), bounded(1));
            for (tell, told) in [(left.0, right.1), (right.0, left.1)] {
                let runtime = runtime.clone();
                threads.push(thread::spawn(move || {
                    let executor = Executor::new();
                    runtime.block_on(executor.run(rounds(tell, told)));
                }));
            }
        }
        while !threads.iter().all(thread::JoinHandle::is_finished) {
            ping.ping();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Threads are woken and unwind, or drop the future that they waited for.
#[test]
fn a_woken_follower_that_leaves_by_a_panic_passes_leadership_on() {
    without_deputy(|_, runtime| {
        let mut ping = Ping::new(runtime);
        for (tell, guest) in company(runtime, 4, || panic!("on purpose")) {
            tell.send_blocking(()).unwrap();
            ping.ping();
            assert!(guest.join().is_err());
            ping.ping();
        }
    });
}

/// A short stress test; `tests/soak` has the long one.
#[test]
fn a_thread_leads_while_sources_are_registered() {
    for_setups(
        |_| true,
        |setup, runtime| {
            let mut ping = Ping::new(runtime);
            let until = Instant::now() + Duration::from_millis(100);
            let churn = |_| {
                let runtime2 = runtime.clone();
                runtime.spawn(async move {
                    while Instant::now() < until {
                        let (mut one, mut other) = pair();
                        let read = runtime2.spawn(async move { other.read_exact(&mut [0; 3]).await });
                        let cancelled = runtime2.spawn(pending::<()>());
                        Timer::after(Duration::from_micros(50)).await;
                        one.write_all(b"abc").await.unwrap();
                        drop(cancelled);
                        read.await.unwrap();
                    }
                })
            };
            let tasks: Vec<_> = (0..2 * setup.threads).map(churn).collect();
            while Instant::now() < until {
                ping.ping();
            }
            tasks.into_iter().for_each(|task| runtime.block_on(task));
        },
    );
}

/// Tasks block until the pool has more threads than usual; then the surplus threads retire while pings
/// arrive, and another thread leads.
#[test]
fn surplus_threads_retire_and_a_thread_still_leads() {
    let some = |setup: Setup| setup.threads != 4 && !setup.portable;
    for_setups(some, |setup, runtime| {
        let mut ping = Ping::new(runtime);
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let started = Arc::new(AtomicUsize::new(0));
        let block = |_| {
            let (latch, started) = (latch.clone(), started.clone());
            runtime.spawn(async move {
                started.fetch_add(1, SeqCst);
                latch.wait();
            })
        };
        let tasks: Vec<_> = (0..setup.threads + 2).map(block).collect();
        eventually("all tasks start, on threads that are added", || {
            ping.ping();
            started.load(SeqCst) == setup.threads + 2
        });
        assert!(runtime.metrics().workers > setup.threads);
        drop(free);
        tasks.into_iter().for_each(|task| runtime.block_on(task));
        eventually("surplus threads retire", || {
            ping.ping();
            runtime.metrics().workers == setup.threads
        });
        ping.ping();
    });
}

/// Waits for a message; counts.
async fn waiter(told: Receiver<()>, done: Arc<AtomicUsize>) {
    let _ = told.recv().await;
    done.fetch_add(1, SeqCst);
}

/// Tasks are in the slot, the ring and the injector of a `run` that is not polled any more. Fails if
/// `any_task` leaves out one of the three.
#[test]
fn a_driver_that_only_ticks_reaches_every_task() {
    const TASKS: usize = 600;
    let ticks: [fn(&Executor<'_>) -> bool; 2] =
        [|executor| executor.try_tick(), |executor| block_on(future::poll_once(executor.tick())).is_some()];
    for tick in ticks {
        let executor = Executor::new();
        let done = Arc::new(AtomicUsize::new(0));
        let (tell, told) = bounded::<()>(1);
        for _ in 0..TASKS {
            executor.spawn(waiter(told.clone(), done.clone())).detach();
        }
        while executor.try_tick() {}
        assert_eq!(done.load(SeqCst), 0);
        let mut run = pin!(executor.run(pending::<()>()));
        block_on(async {
            executor.spawn(async move { drop(tell) }).detach();
            // One poll runs some of the woken tasks, not all.
            assert!(future::poll_once(&mut run).await.is_none());
            let early = done.load(SeqCst);
            assert!(early < TASKS, "the poll left nothing to tick for");
            let mut ticked = 0;
            while tick(&executor) {
                ticked += 1;
            }
            assert_eq!(done.load(SeqCst), TASKS, "{early} in the poll, {ticked} ticks");
        });
    }
}

/// The task that was woken last is in the slot. Fails if `any_task` leaves out the slots.
#[test]
fn a_driver_that_only_ticks_reaches_the_slot() {
    const ROUNDS: usize = 1_000;
    static EXECUTOR: Executor<'static> = Executor::new();
    async fn play(tell: Sender<usize>, told: Receiver<usize>) {
        while let Ok(round @ 0..ROUNDS) = told.recv().await {
            tell.send(round + 1).await.unwrap();
        }
    }
    let (left, right) = (bounded(1), bounded(1));
    left.0.try_send(0).unwrap();
    let one = EXECUTOR.spawn(play(left.0, right.1));
    let other = EXECUTOR.spawn(play(right.0, left.1));
    let mut run = pin!(EXECUTOR.run(pending::<()>()));
    // Without a deputy, which would move the task to the injector.
    let runtime = Runtime::builder().threads(1).tuning(without_looks()).build().unwrap();
    runtime.block_on(async {
        // After one poll with a full share, one of the two tasks is in the slot, because the other one has
        // just woken it.
        assert!(future::poll_once(&mut run).await.is_none());
        assert!(!one.is_finished() && !other.is_finished());
        while EXECUTOR.try_tick() {}
        assert!(one.is_finished() && other.is_finished());
    });
}

/// A `run` that was polled in one `block_on` and continues in another one, or on another thread, finds its
/// tasks. Fails if a task is left in a queue that no thread looks at.
#[test]
fn a_run_that_moved_finds_its_tasks() {
    static EXECUTOR: Executor<'static> = Executor::new();
    let mut run = Box::pin(EXECUTOR.run(pending::<()>()));
    let (tell, told) = unbounded::<()>();
    let (answer, answered) = unbounded::<()>();
    let echo = async move {
        while told.recv().await.is_ok() {
            answer.send(()).await.unwrap();
        }
    };
    EXECUTOR.spawn(echo).detach();
    soon("each round is answered", move || {
        block_on(async {
            assert!(future::poll_once(&mut run).await.is_none());
            let (end, ended) = bounded::<()>(1);
            // From here on another thread drives the run, while this thread's frame still knows it.
            let mover = thread::spawn(move || {
                block_on(future::or(run, async {
                    ended.recv().await.unwrap_err();
                }));
            });
            for _ in 0..50 {
                tell.send(()).await.unwrap();
                answered.recv().await.unwrap();
            }
            drop(end);
            mover.join().unwrap();
        });
    });
}

/// A run is polled by hand with a waker that does nothing: its tasks must be reachable, too.
#[test]
fn a_run_polled_by_hand_outside_of_any_block_on_is_reachable() {
    let executor = Executor::new();
    let task = executor.spawn(async { 5 });
    let mut run = pin!(executor.run(task));
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(run.as_mut().poll(&mut cx), Poll::Ready(5));
}
