//! A task blocks its thread until a second task has run, which another thread spawns at the moment when the
//! first task's timer fires. A second runner of the same executor idles all the time: the second task runs
//! there, even if the idle thread leads, and even if the runner that blocks was notified of the task.

use std::future::Future;
use std::sync::Arc;

use super::stage::{SOON, settles};
use super::{Latch, Pace, explore, foreign_block_on, runtime, sleep, spawn, ticks};
use crate::sync::Instant;
use crate::{Executor, LocalExecutor, Timer, block_on};

/// The two moments are one.
struct Moment(Instant, Latch);

impl Moment {
    fn new() -> Self {
        Self(Instant::now() + ticks(2), Latch::new())
    }

    /// Waits for the timer, then blocks the thread.
    fn blocks(&self) -> impl Future<Output = ()> + Send + 'static {
        let (at, latch) = (self.0, self.1.clone());
        async move {
            Timer::at(at).await;
            latch.wait();
        }
    }

    /// Waits for the moment, and has `spawn` spawn what unblocks the other one.
    fn unblocks(&self, spawn: impl FnOnce(Latch)) -> Pace {
        sleep(2);
        let pace = Pace::new();
        spawn(self.1.clone());
        pace
    }
}

#[test]
fn one_of_two_workers() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let moment = Moment::new();
        let task = runtime.spawn(moment.blocks());
        let pace = moment.unblocks(|latch| runtime.spawn(async move { latch.open() }).detach());
        foreign_block_on(task);
        pace.at_most(SOON, "an idle worker runs it");
        settles(&runtime);
    });
}

#[test]
fn one_of_two_workers_beside_a_local_executor() {
    explore(1_500, || {
        let runtime = Arc::new(runtime(2, 2));
        let moment = Moment::new();
        let over = Latch::new();
        let local = spawn("local", {
            let (runtime, over) = (runtime.clone(), over.clone());
            move || {
                let executor = LocalExecutor::new();
                runtime.block_on(executor.run(over.opened()));
                assert!(executor.is_empty());
            }
        });
        let task = runtime.spawn(moment.blocks());
        let pace = moment.unblocks(|latch| runtime.spawn(async move { latch.open() }).detach());
        foreign_block_on(task);
        pace.at_most(SOON, "an idle worker runs it");
        over.open();
        local.join().expect("it only waits");
        settles(&runtime);
    });
}

#[test]
fn a_local_task_beside_idle_workers() {
    explore(1_500, || {
        let runtime = Arc::new(runtime(2, 2));
        let moment = Moment::new();
        let local = spawn("local", {
            let (runtime, future) = (runtime.clone(), moment.blocks());
            move || {
                let executor = LocalExecutor::new();
                let task = executor.spawn(future);
                runtime.block_on(executor.run(task));
            }
        });
        let pace = moment.unblocks(|latch| runtime.spawn(async move { latch.open() }).detach());
        local.join().expect("it only waits");
        pace.at_most(SOON, "an idle worker runs it");
        settles(&runtime);
    });
}

#[test]
fn a_root_future_beside_idle_workers() {
    explore(1_500, || {
        let runtime = Arc::new(runtime(2, 2));
        let moment = Moment::new();
        let root = spawn("root", {
            let (runtime, future) = (runtime.clone(), moment.blocks());
            move || runtime.block_on(future)
        });
        let pace = moment.unblocks(|latch| runtime.spawn(async move { latch.open() }).detach());
        root.join().expect("it only waits");
        pace.at_most(SOON, "an idle worker runs it");
        settles(&runtime);
    });
}

/// An executor that two threads run, each as it likes.
fn one_of_two_runners<A, B>(first: A, second: B)
where
    A: FnOnce(&Executor<'static>, Latch) + Send + 'static,
    B: FnOnce(&Executor<'static>, Latch) + Send + 'static,
{
    let executor = Arc::new(Executor::new());
    let over = Latch::new();
    let threads = [
        spawn("first", {
            let (executor, over) = (executor.clone(), over.clone());
            move || first(&executor, over)
        }),
        spawn("second", {
            let (executor, over) = (executor.clone(), over.clone());
            move || second(&executor, over)
        }),
    ];
    let moment = Moment::new();
    let task = executor.spawn(moment.blocks());
    let pace = moment.unblocks(|latch| executor.spawn(async move { latch.open() }).detach());
    foreign_block_on(task);
    pace.at_most(SOON, "the idle runner runs it");
    over.open();
    threads.into_iter().for_each(|thread| thread.join().expect("it only runs tasks"));
    assert!(executor.is_empty());
}

fn ours(executor: &Executor<'static>, over: Latch) {
    block_on(executor.run(over.opened()));
}

fn strangers(executor: &Executor<'static>, over: Latch) {
    foreign_block_on(executor.run(over.opened()));
}

fn in_a_runtime(executor: &Executor<'static>, over: Latch) {
    runtime(1, 1).block_on(executor.run(over.opened()));
}

/// A stranger that runs one task at a time.
fn ticking(executor: &Executor<'static>, over: Latch) {
    foreign_block_on(async {
        let mut over = std::pin::pin!(over.opened());
        loop {
            let mut tick = std::pin::pin!(executor.tick());
            let over = std::future::poll_fn(|cx| {
                if over.as_mut().poll(cx).is_ready() {
                    return std::task::Poll::Ready(true);
                }
                tick.as_mut().poll(cx).map(|()| false)
            });
            if over.await {
                return;
            }
        }
    });
}

#[test]
fn two_in_one_pool() {
    explore(1_500, || one_of_two_runners(ours, ours));
}

#[test]
fn two_in_two_pools() {
    explore(1_500, || one_of_two_runners(in_a_runtime, in_a_runtime));
}

#[test]
fn one_in_a_pool_and_a_stranger() {
    explore(1_500, || one_of_two_runners(ours, strangers));
    explore(1_500, || one_of_two_runners(in_a_runtime, strangers));
}

#[test]
fn two_strangers() {
    explore(1_500, || one_of_two_runners(strangers, strangers));
}

#[test]
fn a_stranger_and_a_ticker() {
    explore(1_500, || one_of_two_runners(strangers, ticking));
}
