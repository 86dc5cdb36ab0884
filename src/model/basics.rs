//! Basics, which must work before any other scenario is of use.

use std::future::poll_fn;
use std::time::Duration;

use super::{explore, explore_twice, spawn};
use crate::reactor::{Direction, Pipe, Source};
use crate::sync::{Instant, Mutex, lock};
use crate::{Runtime, Timer, current};

fn runtime() -> Runtime {
    Runtime::builder().threads(2).max_threads(4).build().expect("a runtime is made of memory only")
}

/// Waits for a byte in the pipe, in the reactor of the pool that this runs in.
async fn read(pipe: &Pipe) {
    let reactor = current::current_reactor().expect("inside of a runtime");
    // SAFETY: a number stays what it is.
    let source = unsafe { Source::new(reactor, pipe.raw()) }.expect("there is such a pipe");
    poll_fn(|cx| source.poll_io(Direction::Read, cx, || pipe.read()))
        .await
        .expect("reading a pipe does not fail");
}

#[test]
fn a_task_is_awaited() {
    explore(1_000, || {
        let runtime = runtime();
        let task = runtime.spawn(async { 6 * 7 });
        assert_eq!(runtime.block_on(task), 42);
    });
}

fn a_task_reads_what_a_thread_writes() {
    let runtime = runtime();
    let pipe = Pipe::new();
    let reader = runtime.spawn({
        let pipe = pipe.clone();
        async move {
            read(&pipe).await;
            read(&pipe).await;
        }
    });
    let writer = spawn("writer", move || (0..2).for_each(|_| pipe.write()));
    runtime.block_on(reader);
    writer.join().expect("it only writes");
}

#[test]
fn a_task_awaits_what_another_thread_writes() {
    explore(1_000, a_task_reads_what_a_thread_writes);
}

#[test]
fn a_schedule_can_be_replayed() {
    explore_twice(1_000, a_task_reads_what_a_thread_writes);
}

#[test]
fn a_timer_of_the_default_instance_fires_in_time() {
    explore(1_500, || {
        let wait = Duration::from_millis(20);
        let fired = crate::block_on(async {
            let since = Instant::now();
            Timer::after(wait).await;
            since.elapsed()
        });
        assert!(wait <= fired && fired < 2 * wait, "after {fired:?}");
    });
}

/// Tests the scenarios themselves: a deadlock is found.
#[test]
#[should_panic = "deadlock!"]
fn two_tasks_that_hold_what_the_other_wants() {
    explore(100, || {
        let runtime = runtime();
        let locks = std::sync::Arc::new([Mutex::new(()), Mutex::new(())]);
        let tasks = [(0, 1), (1, 0)].map(|(first, second)| {
            let locks = locks.clone();
            runtime.spawn(async move {
                let _first = lock(&locks[first]);
                let _second = lock(&locks[second]);
            })
        });
        tasks.into_iter().for_each(|task| runtime.block_on(task));
    });
}
