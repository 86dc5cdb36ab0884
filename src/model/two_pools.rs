//! A source or timer of one pool, awaited in the `block_on` of another one that is nested in it: by its root
//! future, or by a task of the other pool, where the thread that would lead waits for it.

use std::future::Future;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};

use super::stage::{SOON, settles, writes_in};
use super::{Pace, Reader, explore, runtime, ticks};
use crate::reactor::Pipe;
use crate::sync::thread::JoinHandle;
use crate::{Runtime, Timer, block_on};

/// Returns a source to wait for, and a thread that measures when its event came.
fn source() -> (Reader, JoinHandle<Pace>) {
    let pipe = Pipe::new();
    let reader = Reader::new(&pipe);
    let writer = writes_in(thread_rng().gen_range(0..4), &pipe);
    (reader, writer)
}

fn came(writer: JoinHandle<Pace>) {
    writer.join().expect("it only writes").at_most(SOON, "a byte for the other pool");
}

/// At once, or after the thread has led below.
fn above_the_default_instance(wait: impl Fn(&Runtime)) {
    block_on(async {
        if thread_rng().gen_bool(0.5) {
            Timer::after(ticks(1)).await;
        }
        wait(&runtime(1, 1));
    });
}

#[test]
fn the_root_future_reads_what_is_registered_below() {
    explore(1_500, || {
        above_the_default_instance(|runtime| {
            let (reader, writer) = source();
            runtime.block_on(reader.byte()).expect("somebody leads");
            came(writer);
        });
    });
}

#[test]
fn a_task_reads_what_is_registered_below() {
    explore(1_500, || {
        above_the_default_instance(|runtime| {
            let (reader, writer) = source();
            let task = runtime.spawn(async move { reader.byte().await });
            runtime.block_on(task).expect("somebody leads");
            came(writer);
        });
    });
}

#[test]
fn below_is_a_runtime_whose_worker_blocks_in_it() {
    explore(1_500, || {
        let lower = Arc::new(runtime(1, 1));
        let task = lower.spawn(async {
            let (reader, writer) = source();
            let upper = runtime(1, 1);
            let task = upper.spawn(async move { reader.byte().await });
            upper.block_on(task).expect("somebody leads");
            came(writer);
            let pace = Pace::new();
            Timer::after(ticks(2)).await;
            pace.at_most(2 + SOON, "a timer of the lower pool");
        });
        lower.block_on(task);
        settles(&lower);
    });
}

#[test]
fn a_timer_that_was_armed_below() {
    explore(1_500, || {
        above_the_default_instance(|runtime| {
            let mut timer = Timer::after(ticks(4));
            let pace = Pace::new();
            // Armed here, in the pool below.
            block_on(std::future::poll_fn(|cx| {
                let _ = std::pin::Pin::new(&mut timer).poll(cx);
                std::task::Poll::Ready(())
            }));
            runtime.block_on(timer);
            pace.at_most(4 + SOON, "a timer of the other pool");
        });
    });
}
