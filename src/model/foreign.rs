//! Another library's `block_on` inside of ours, which blocks a thread that would have led: in a root future,
//! in a task, in a task of a local executor; at once, later, and again after the thread has led in between.

use shuttle::rand::{Rng, thread_rng};

use super::stage::{SOON, writes_in};
use super::{Latch, Pace, Reader, explore, foreign_block_on, runtime, spawn, ticks, within, yields};
use crate::reactor::Pipe;
use crate::{Executor, LocalExecutor, Timer, block_on};

/// Waits under a foreign `block_on`: for a timer, or for a byte that a thread writes.
fn wait_here() {
    match thread_rng().gen_range(0..3) {
        0 => waits_for_a_timer(),
        1 => waits_for_a_pipe(),
        _ => waits_for_nothing(),
    }
}

fn waits_for_a_timer() {
    within(3 + SOON, "a timer under a foreign block_on", || foreign_block_on(Timer::after(ticks(3))));
}

fn waits_for_a_pipe() {
    let pipe = Pipe::new();
    let reader = Reader::new(&pipe);
    let writer = writes_in(thread_rng().gen_range(0..4), &pipe);
    foreign_block_on(reader.byte()).expect("somebody leads");
    writer.join().expect("it only writes").at_most(SOON, "a byte under a foreign block_on");
}

/// The event is there already.
fn waits_for_nothing() {
    let pipe = Pipe::new();
    pipe.write();
    foreign_block_on(Reader::new(&pipe).byte()).expect("nobody has to lead");
}

/// Waits there at once or later, and once or twice.
async fn blocks() {
    match thread_rng().gen_range(0..3) {
        0 => {}
        // In the pool, then, and nothing was registered there yet.
        1 => yields().await,
        _ => _ = Timer::after(ticks(1)).await,
    }
    wait_here();
    match thread_rng().gen_range(0..3) {
        0 => {}
        1 => wait_here(),
        _ => {
            let pace = Pace::new();
            Timer::after(ticks(2)).await;
            pace.at_most(2 + SOON, "a timer after a foreign block_on");
            wait_here();
        }
    }
}

#[test]
fn in_a_root_future() {
    explore(1_500, || block_on(blocks()));
}

#[test]
fn in_a_root_future_beside_one_that_sleeps() {
    explore(1_500, || {
        let over = Latch::new();
        let sleeper = spawn("sleeper", {
            let over = over.clone();
            move || block_on(over.opened())
        });
        block_on(blocks());
        over.open();
        sleeper.join().expect("it only waits");
    });
}

#[test]
fn in_a_task() {
    explore(1_500, || {
        let executor = Executor::new();
        block_on(executor.run(executor.spawn(blocks())));
    });
}

#[test]
fn in_a_task_of_a_local_executor() {
    explore(1_500, || {
        let executor = LocalExecutor::new();
        block_on(executor.run(executor.spawn(blocks())));
    });
}

#[test]
fn in_a_task_of_a_runtime_with_one_worker() {
    explore(1_500, || {
        let runtime = runtime(1, 1);
        let task = runtime.spawn(blocks());
        if thread_rng().gen_bool(0.5) { runtime.block_on(task) } else { foreign_block_on(task) }
    });
}

#[test]
fn in_two_tasks_of_a_runtime_with_two_workers() {
    explore(1_500, || {
        let runtime = runtime(2, 2);
        let tasks = [runtime.spawn(blocks()), runtime.spawn(blocks())];
        tasks.into_iter().for_each(|task| foreign_block_on(task));
    });
}

#[test]
fn without_any_pool() {
    explore(1_500, || {
        let waiters = [spawn("first", wait_here), spawn("second", wait_here)];
        waiters.into_iter().for_each(|waiter| waiter.join().expect("it only waits"));
    });
}
