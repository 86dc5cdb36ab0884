//! Tasks that block their threads until others have run, which were left to those same threads, or to none.

use super::stage::{SOON, settles};
use super::{Latch, Reader, explore, foreign_block_on, runtime, sleep, spawn, ticks, within};
use crate::reactor::Pipe;
use crate::{Executor, Timer, block_on};

/// Wakes `others` tasks from inside of a task, so that they are in the slot and the ring of its runner, and
/// blocks until all of them have run.
async fn wakes_and_blocks(others: usize, spawn: impl Fn(Latch, Latch)) {
    let start = Latch::new();
    let done: Vec<_> = (0..others).map(|_| Latch::new()).collect();
    done.iter().for_each(|done| spawn(start.clone(), done.clone()));
    // The tasks wait for the latch by now, or are about to.
    Timer::after(ticks(2)).await;
    start.open();
    within(SOON, "what a blocked runner had is run by another", || done.iter().for_each(Latch::wait));
}

async fn follows(start: Latch, done: Latch) {
    start.opened().await;
    done.open();
}

#[test]
fn in_a_slot() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let task =
            runtime.spawn(wakes_and_blocks(1, |start, done| crate::spawn(follows(start, done)).detach()));
        foreign_block_on(task);
        settles(&runtime);
    });
}

#[test]
fn in_a_ring() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let task =
            runtime.spawn(wakes_and_blocks(3, |start, done| crate::spawn(follows(start, done)).detach()));
        foreign_block_on(task);
        settles(&runtime);
    });
}

/// The tasks come into the slot by an event, between two polls.
#[test]
fn beside_a_task_that_blocks_first() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let pipes = [Pipe::new(), Pipe::new()];
        let latch = Latch::new();
        let readers = runtime.block_on(async { [0, 1].map(|at| Reader::new(&pipes[at])) });
        let [first, second] = readers;
        let blocks = runtime.spawn({
            let latch = latch.clone();
            async move {
                first.byte().await.expect("somebody leads");
                within(SOON, "the other task runs", || latch.wait());
            }
        });
        let opens = runtime.spawn(async move {
            second.byte().await.expect("somebody leads");
            latch.open();
        });
        let writer = spawn("writer", move || pipes.iter().for_each(Pipe::write));
        foreign_block_on(blocks);
        foreign_block_on(opens);
        writer.join().expect("it only writes");
        settles(&runtime);
    });
}

/// An executor that two threads of the default instance run.
#[test]
fn in_a_slot_of_an_executor() {
    explore(1_500, || {
        let executor = std::sync::Arc::new(Executor::new());
        let over = Latch::new();
        let runners = ["first", "second"].map(|name| {
            let (executor, over) = (executor.clone(), over.clone());
            spawn(name, move || block_on(executor.run(over.opened())))
        });
        let task = executor.spawn({
            let executor = executor.clone();
            wakes_and_blocks(2, move |start, done| executor.spawn(follows(start, done)).detach())
        });
        foreign_block_on(task);
        over.open();
        runners.into_iter().for_each(|runner| runner.join().expect("it only runs tasks"));
        assert!(executor.is_empty());
    });
}

/// Others may take a runner's tasks as soon as a foreign `block_on` begins to run an executor on top of it.
#[test]
fn below_a_stranger_that_runs_an_executor() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let task = runtime.spawn(async {
            let start = Latch::new();
            let done = Latch::new();
            crate::spawn(follows(start.clone(), done.clone())).detach();
            Timer::after(ticks(2)).await;
            start.open();
            let executor = Executor::new();
            within(1, "what is below a stranger", || foreign_block_on(executor.run(done.opened())));
        });
        foreign_block_on(task);
        settles(&runtime);
    });
}

/// Each task waits for the next one, and there are more of them than workers: one is added for each.
#[test]
fn a_chain_that_is_longer_than_the_workers_are_many() {
    const LONG: usize = 4;
    explore(6_000, || {
        let runtime = runtime(1, LONG);
        let latches: Vec<_> = (0..=LONG).map(|_| Latch::new()).collect();
        let tasks: Vec<_> = (0..LONG)
            .map(|at| {
                let (mine, next) = (latches[at].clone(), latches[at + 1].clone());
                runtime.spawn(async move {
                    next.wait();
                    mine.open();
                })
            })
            .collect();
        latches[LONG].open();
        within(LONG as u32 * SOON, "a chain", || tasks.into_iter().for_each(foreign_block_on));
        settles(&runtime);
    });
}

/// The only worker waits for a task that another thread spawns when all have been asleep for a while. Fails
/// if a worker that waits in a nested `block_on` counts as asleep.
#[test]
fn a_nested_block_on_of_a_worker_for_a_task_that_comes_later() {
    explore(2_500, || {
        let runtime = runtime(1, 8);
        let done = Latch::new();
        let opened = done.clone();
        let task = runtime.spawn(async move { block_on(opened.opened()) });
        sleep(10);
        within(SOON, "a task beside a nested block_on", || {
            foreign_block_on(runtime.spawn(async move { done.open() }));
        });
        foreign_block_on(task);
        settles(&runtime);
    });
}

/// The only worker blocks, and waits for a task that another thread spawns when the deputy looks rarely.
/// Fails if that thread does not call the deputy.
#[test]
fn a_task_that_comes_while_the_deputy_rests() {
    explore(2_500, || {
        let runtime = runtime(1, 2);
        let latch = Latch::new();
        let opened = latch.clone();
        let task = runtime.spawn(async move { latch.wait() });
        sleep(100);
        within(SOON, "a task beside one that blocks for long", || {
            foreign_block_on(runtime.spawn(async move { opened.open() }));
        });
        foreign_block_on(task);
        settles(&runtime);
    });
}

/// Another worker is added for each level, although one worker is allowed.
#[test]
fn a_nested_block_on_of_a_worker_that_is_the_only_one() {
    fn nested(depth: u32) {
        if depth > 0 {
            block_on(crate::spawn(async move { nested(depth - 1) }));
        }
    }
    explore(2_500, || {
        let runtime = runtime(1, 8);
        let task = runtime.spawn(async { nested(3) });
        within(3 * SOON, "nested block_ons", || foreign_block_on(task));
        settles(&runtime);
    });
}

/// The same, and what it waits for waits for something else.
#[test]
fn a_nested_block_on_for_a_task_with_a_timer() {
    explore(2_500, || {
        let runtime = runtime(1, 8);
        let task = runtime.spawn(async {
            block_on(crate::spawn(async {
                Timer::after(ticks(2)).await;
                block_on(crate::spawn(Timer::after(ticks(2))));
            }));
        });
        // Each of the two is run when it is spawned and when its timer has fired.
        within(4 + 4 * SOON, "nested block_ons", || foreign_block_on(task));
        settles(&runtime);
    });
}
