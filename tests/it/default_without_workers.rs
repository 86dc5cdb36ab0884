//! LF5 in the default instance without workers: a thread leads if anything waits for events, and no
//! additional thread exists before. Each test runs in a process of its own, because other tests start the
//! workers of that instance.

use std::future::{Future, pending};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Executor, Timer, block_on};

use crate::given_time::RecvSoon;
use crate::idle_threads::assert_all_rest;
use crate::setups::{eventually, is_child};

/// No thread is in `block_on`: sources and timers work under the executor of another library, too (LF5).
#[test]
fn lf5_no_thread_in_block_on() {
    if !is_child("default_without_workers::lf5_no_thread_in_block_on", ":") {
        return;
    }
    let alone = threads();
    // A future that needs no reactor starts no thread.
    let executor = Executor::new();
    let task = executor.spawn(async { Timer::never().will_fire() });
    assert!(!pollster::block_on(executor.run(task)));
    assert_eq!(threads(), alone);
    for block_on in [future::block_on, futures_executor::block_on, pollster::block_on] {
        foreign_round(block_on);
    }
    assert_eq!(paceline::metrics().workers, 0);
}

/// Returns the number of threads of this process, if the system reports it.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn foreign_round(block_on: fn(Pin<Box<dyn Future<Output = ()> + Send>>)) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let reader = thread::spawn(move || {
        block_on(Box::pin(async {
            let mut socket = Async::new(theirs).unwrap();
            socket.read_exact(&mut [0]).await.unwrap();
            Timer::after(Duration::from_millis(2)).await;
        }));
    });
    ours.write_all(b"x").unwrap();
    eventually("the reader ends", || reader.is_finished());
    reader.join().unwrap();
}

/// A thread waits under another library's `block_on`, and the only thread in paceline's `block_on` leaves.
/// Either of `Reactor::start_leader_for_wait` and the drop of `LevelGuard` keeps the wait from being lost.
#[test]
fn lf5_the_last_thread_leaves_another_one_that_waits() {
    if !is_child("default_without_workers::lf5_the_last_thread_leaves_another_one_that_waits", ":") {
        return;
    }
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let (tell, told) = mpsc::channel();
    block_on(async {
        Timer::after(Duration::from_micros(1)).await;
        let tell = tell.clone();
        thread::spawn(move || {
            future::block_on(async {
                let (mut socket, mut buf) = (Async::new(theirs).unwrap(), [0]);
                let mut read = socket.read_exact(&mut buf);
                assert!(future::poll_once(&mut read).await.is_none());
                tell.send(()).unwrap();
                read.await.unwrap();
                tell.send(()).unwrap();
            });
        });
        told.recv_soon().unwrap();
    });
    ours.write_all(b"x").unwrap();
    told.recv_soon().expect("no thread leads");
}

/// A task was polled, and waits, on the only thread that is in `block_on`. That thread leaves, after a wait
/// of its own or without one, and the task's executor goes on under another library's `block_on`. Fails if
/// the leaving thread does not look whether events are waited for: the drop of `LevelGuard`.
fn left_alone(has_waited: bool, wait: impl Future<Output = ()> + Send + 'static, then: impl FnOnce()) {
    static EXECUTOR: Executor<'static> = Executor::new();
    let (tell, told) = mpsc::channel();
    let task = async move {
        wait.await;
        tell.send(()).unwrap();
    };
    EXECUTOR.spawn(task).detach();
    block_on(EXECUTOR.run(async {
        if has_waited {
            Timer::after(Duration::from_micros(1)).await;
        }
        while EXECUTOR.try_tick() {}
    }));
    thread::spawn(|| future::block_on(EXECUTOR.run(pending::<()>())));
    then();
    told.recv_soon().expect("no thread leads");
}

fn left_alone_with_a_source(has_waited: bool) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let read = async move {
        let mut socket = Async::new(theirs).unwrap();
        socket.read_exact(&mut [0]).await.unwrap();
    };
    left_alone(has_waited, read, || ours.write_all(b"x").unwrap());
}

fn left_alone_with_a_timer(has_waited: bool) {
    let wait = async {
        Timer::after(Duration::from_millis(50)).await;
    };
    left_alone(has_waited, wait, || {});
}

#[test]
fn lf5_the_last_thread_leaves_a_source_that_is_waited_for() {
    if is_child("default_without_workers::lf5_the_last_thread_leaves_a_source_that_is_waited_for", ":") {
        left_alone_with_a_source(true);
    }
}

#[test]
fn lf5_a_thread_that_never_waits_leaves_a_source_that_is_waited_for() {
    if is_child(
        "default_without_workers::lf5_a_thread_that_never_waits_leaves_a_source_that_is_waited_for",
        ":",
    ) {
        left_alone_with_a_source(false);
    }
}

#[test]
fn lf5_the_last_thread_leaves_a_timer_that_is_waited_for() {
    if is_child("default_without_workers::lf5_the_last_thread_leaves_a_timer_that_is_waited_for", ":") {
        left_alone_with_a_timer(true);
    }
}

#[test]
fn lf5_a_thread_that_never_waits_leaves_a_timer_that_is_waited_for() {
    if is_child(
        "default_without_workers::lf5_a_thread_that_never_waits_leaves_a_timer_that_is_waited_for",
        ":",
    ) {
        left_alone_with_a_timer(false);
    }
}

/// The deputy watches over the one thread, and stays.
#[test]
fn lf5_a_program_that_only_calls_block_on_has_the_deputy_beside_it() {
    if !is_child(
        "default_without_workers::lf5_a_program_that_only_calls_block_on_has_the_deputy_beside_it",
        ":",
    ) {
        return;
    }
    let before = threads();
    let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
    for _ in 0..10 {
        let (far, near) = (Duration::from_secs(3600), Duration::from_micros(100));
        block_on(future::or(Timer::after(far), Timer::after(near)));
        let write = async {
            Timer::after(near).await;
            one.write_all(b"x").await
        };
        let (wrote, read) = block_on(future::zip(write, async { other.read_exact(&mut [0]).await }));
        assert!(wrote.is_ok() && read.is_ok());
    }
    assert_eq!(threads(), before + 1, "the deputy");
    drop((one, other));
    assert_all_rest();
}
