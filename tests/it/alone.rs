//! LF5 in the default instance without workers: somebody leads where anything is waited for, and nobody else is there
//! where nothing is. In processes of their own, because other tests have that instance's workers started.

use std::future::{Future, pending};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Executor, Timer, block_on};

use crate::setups::{SOON, eventually, is_child};

/// Nobody is in `block_on`: sources and timers work all the same under somebody else's executor (LF5).
#[test]
fn lf5_nobody_in_block_on() {
    if !is_child("alone::lf5_nobody_in_block_on", ":") {
        return;
    }
    let alone = threads();
    // What needs no reactor starts nobody.
    let executor = Executor::new();
    let task = executor.spawn(async { Timer::never().will_fire() });
    assert!(!pollster::block_on(executor.run(task)));
    assert_eq!(threads(), alone);
    // It may be gone between two rounds, or at work: each round begins where another has ended, or on its heels.
    for _ in 0..2 {
        for block_on in [future::block_on, futures_executor::block_on, pollster::block_on] {
            foreign_round(block_on);
        }
        eventually("the deputy has gone home", || threads() == alone);
    }
    assert_eq!(paceline::metrics().workers, 0);
}

/// Threads of this process, where the system tells.
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

/// A task that is known to block is polled, and nobody is parked who could lead: a thread is asked for. The deputy that would get one has
/// gone home, because nothing needed it, and comes again for whoever does. Fails if what was asked for keeps the next one from being
/// started.
#[test]
fn lf5_a_task_that_blocks_when_the_deputy_has_gone_home() {
    if !is_child("alone::lf5_a_task_that_blocks_when_the_deputy_has_gone_home", ":") {
        return;
    }
    let (executor, alone) = (Executor::new(), threads());
    let (tell, told) = async_channel::bounded(1);
    let task = executor.spawn(async move {
        Timer::after(Duration::from_millis(1)).await;
        thread::sleep(Duration::from_millis(50));
        told.recv().await.unwrap();
    });
    let teller = thread::spawn(move || {
        eventually("the deputy comes", || threads() > alone + 1);
        eventually("and goes home", || threads() == alone + 1);
        tell.send_blocking(()).unwrap();
    });
    block_on(executor.run(task));
    teller.join().unwrap();
    foreign_round(future::block_on);
}

/// A thread waits under somebody else's `block_on`, and the only one that is in ours leaves. Two things keep that from
/// being lost, of which each would do: `Pool::someone_waits_here` and `Pool::was_left`.
#[test]
fn lf5_the_last_thread_leaves_another_one_that_waits() {
    if !is_child("alone::lf5_the_last_thread_leaves_another_one_that_waits", ":") {
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
        told.recv_timeout(SOON).unwrap();
    });
    ours.write_all(b"x").unwrap();
    told.recv_timeout(SOON).expect("nobody leads");
}

/// A task was polled, and waits, on the only thread that is in `block_on`. That leaves, having waited itself or not, and
/// the task's executor goes on under somebody else's `block_on`. Fails if who leaves does not look what is waited for:
/// `Pool::was_left`.
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
    told.recv_timeout(SOON).expect("nobody leads");
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
    if is_child("alone::lf5_the_last_thread_leaves_a_source_that_is_waited_for", ":") {
        left_alone_with_a_source(true);
    }
}

#[test]
fn lf5_a_thread_that_never_waits_leaves_a_source_that_is_waited_for() {
    if is_child("alone::lf5_a_thread_that_never_waits_leaves_a_source_that_is_waited_for", ":") {
        left_alone_with_a_source(false);
    }
}

#[test]
fn lf5_the_last_thread_leaves_a_timer_that_is_waited_for() {
    if is_child("alone::lf5_the_last_thread_leaves_a_timer_that_is_waited_for", ":") {
        left_alone_with_a_timer(true);
    }
}

#[test]
fn lf5_a_thread_that_never_waits_leaves_a_timer_that_is_waited_for() {
    if is_child("alone::lf5_a_thread_that_never_waits_leaves_a_timer_that_is_waited_for", ":") {
        left_alone_with_a_timer(false);
    }
}

/// The deputy watches over the one thread, and nobody else is there: sources that nobody waits for, and timers that end with
/// the future that had them, need nobody to lead.
#[test]
fn lf5_a_program_that_only_calls_block_on_has_one_thread_and_the_deputy() {
    if !is_child("alone::lf5_a_program_that_only_calls_block_on_has_one_thread_and_the_deputy", ":") {
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
    // A relief, too, if this thread was kept from its processor for long in the midst of it.
    assert!((before + 1..=before + 2).contains(&threads()), "{} threads", threads());
    drop((one, other));
    eventually("the deputy has gone home", || threads() == before);
}
