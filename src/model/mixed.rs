//! Small programs at random: a few threads, a few actions each, which block, nest, cancel, and wait for each
//! other.
//!
//! Each action ends in bounded time if every task that can run does run, and so does the whole program.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};

use super::stage::{SOON, is_at_rest};
use super::{Latch, Pace, Reader, explore, foreign_block_on, runtime, sleep, spawn, ticks, yields};
use crate::reactor::Pipe;
use crate::{Runtime, Timer, block_on};

/// Threads that are no workers: the main thread and this many others.
const THREADS: usize = 2;

/// The most ticks that an action may take in programs of these sizes.
const EACH: u32 = 4 + SOON;

/// How deep actions may be inside of one another.
const DEEPEST: u32 = 2;

/// The part of the program that an action needs.
#[derive(Clone)]
struct World {
    runtime: Arc<Runtime>,
}

fn a_moment() -> std::time::Duration {
    ticks(thread_rng().gen_range(0..3))
}

/// A byte comes, from a thread.
fn pipe_to_read() -> (Reader, crate::sync::thread::JoinHandle<()>) {
    let pipe = Pipe::new();
    let reader = Reader::new(&pipe);
    let writer = spawn("writer", move || {
        sleep(thread_rng().gen_range(0..3));
        pipe.write();
    });
    (reader, writer)
}

async fn reads() {
    let (reader, writer) = pipe_to_read();
    // An error where the runtime has ended, or no thread starts.
    let _ = reader.byte().await;
    writer.join().expect("it only writes");
}

impl World {
    /// Something that a task or a root future does.
    fn act(self, depth: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let next = depth + 1;
        Box::pin(async move {
            let least = if depth < DEEPEST { 0 } else { 5 };
            match thread_rng().gen_range(least..10) {
                0 => self.spawns(next).await,
                1 => self.blocks_for_a_task(next),
                2 => block_on(self.act(next)),
                3 => foreign_block_on(self.act(next)),
                4 => drop(self.spawns(next)),
                5 => _ = Timer::after(a_moment()).await,
                6 => reads().await,
                7 => yields().await,
                8 => foreign_block_on(reads()),
                _ => _ = foreign_block_on(Timer::after(a_moment())),
            }
        })
    }

    /// A task that has begun, perhaps, when it is cancelled.
    fn spawns(&self, depth: u32) -> impl Future<Output = ()> + Send + use<> {
        let task = self.runtime.spawn(self.clone().act(depth)).fallible();
        async move { _ = task.await }
    }

    /// Blocks the thread until a task has run.
    fn blocks_for_a_task(&self, depth: u32) {
        let latch = Latch::new();
        let opens = latch.clone();
        let action = self.clone().act(depth);
        self.runtime
            .spawn(async move {
                opens.open();
                action.await;
            })
            .detach();
        latch.wait();
    }

    /// Runs the action on a thread that is not a worker.
    fn root(&self) {
        let action = self.clone().act(0);
        match thread_rng().gen_range(0..3) {
            0 => self.runtime.block_on(action),
            1 => block_on(action),
            _ => foreign_block_on(action),
        }
    }
}

fn program(threads: usize, max_threads: usize, actions: usize) {
    let world = World { runtime: Arc::new(runtime(threads, max_threads)) };
    let pace = Pace::new();
    let others: Vec<_> = (0..THREADS)
        .map(|_| {
            let world = world.clone();
            spawn("other", move || (0..actions).for_each(|_| world.root()))
        })
        .collect();
    (0..actions).for_each(|_| world.root());
    others.into_iter().for_each(|other| other.join().expect("it only does what programs do"));
    let in_all = (THREADS + 1) * actions * (DEEPEST as usize + 1);
    pace.at_most(in_all as u32 * EACH, "a program");
    let World { runtime } = world;
    // Tasks that were detached go on for a while.
    let pace = Pace::new();
    while !is_at_rest(&runtime) {
        pace.at_most(in_all as u32 * EACH, "the runtime comes to rest");
        sleep(1);
    }
}

#[test]
fn with_threads_to_spare() {
    explore(9_000, || program(2, 64, 3));
}

#[test]
fn with_one_worker() {
    explore(9_000, || program(1, 64, 2));
}

/// A thread of the program shuts the runtime down in between.
#[test]
fn beside_a_shutdown() {
    explore(9_000, || {
        let world = World { runtime: Arc::new(runtime(2, 64)) };
        let ender = spawn("ender", {
            let runtime = world.runtime.clone();
            move || {
                sleep(thread_rng().gen_range(0..6));
                _ = runtime.shutdown(ticks(30));
            }
        });
        let other = spawn("other", {
            let world = world.clone();
            move || (0..3).for_each(|_| world.acts_gently())
        });
        (0..3).for_each(|_| world.acts_gently());
        other.join().expect("it only does what programs do");
        ender.join().expect("it only shuts down");
    });
}

impl World {
    /// Like `root`, for a runtime that may be shut down: its tasks may never run, so no thread blocks for
    /// them.
    fn acts_gently(&self) {
        let waits = |future: Pin<Box<dyn Future<Output = ()>>>| match thread_rng().gen_range(0..3) {
            0 => self.runtime.block_on(future),
            1 => block_on(future),
            _ => foreign_block_on(future),
        };
        let task = self.runtime.spawn(async {
            match thread_rng().gen_range(0..4) {
                0 => _ = Timer::after(a_moment()).await,
                1 => reads().await,
                2 => _ = foreign_block_on(Timer::after(a_moment())),
                _ => block_on(reads()),
            }
        });
        match thread_rng().gen_range(0..4) {
            // Panics with a message if the task was cancelled.
            0 => _ = catch_unwind(AssertUnwindSafe(|| foreign_block_on(task))),
            1 => task.detach(),
            2 => drop(task),
            _ => waits(Box::pin(reads())),
        }
    }
}
