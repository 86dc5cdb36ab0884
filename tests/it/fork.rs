//! P10: a child of `fork` has an instance of its own, or a clear error; it never hangs, and takes nothing from its parent.
//!
//! Each test forks in a process of its own, in which nothing else runs. What the child finds out is its exit status, and
//! the panic messages of a child that fails are the test's output.

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Runtime, Timer, block_on, spawn};
use rustix::process::{Pid, Signal};

use crate::children::{end_of, in_child, leave, split};
use crate::setups::{SOON, is_child, text_of};

/// Everything there is to use: workers, sources, timers.
fn all_is_well() {
    let sum = block_on(async {
        let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
        let write = spawn(async move {
            Timer::after(Duration::from_millis(1)).await;
            one.write_all(b"x").await.unwrap();
            1
        });
        other.read_exact(&mut [0]).await.unwrap();
        write.await + spawn(async { 1 }).await
    });
    assert_eq!(sum, 2);
}

/// What `f` panics with.
fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("it says that this is another process's");
    text_of(&*panic).to_owned()
}

/// Fails if the child goes on with the workers that it has not: `Origin` in `pool::instance`.
#[test]
fn p10_a_child_has_a_default_instance_of_its_own() {
    if is_child("fork::p10_a_child_has_a_default_instance_of_its_own", ":") {
        all_is_well();
        in_child(|| {
            all_is_well();
            // And so has a child of that one.
            in_child(all_is_well);
            all_is_well();
        });
        all_is_well();
    }
}

/// Without workers, but with a reactor.
#[test]
fn p10_a_child_of_a_program_that_only_calls_block_on() {
    if is_child("fork::p10_a_child_of_a_program_that_only_calls_block_on", ":") {
        let wait = || block_on(async { Timer::after(Duration::from_millis(1)).await });
        wait();
        in_child(|| {
            wait();
            all_is_well();
        });
        wait();
    }
}

/// The child drops its copies of a source and a timer, and tries to wait with others. Fails if that takes the source out of
/// the epoll instance that both have (`Reactor::deregister`), or waits there (`Reactor::note_wait`).
#[test]
fn p10_a_child_takes_nothing_from_its_parent() {
    if !is_child("fork::p10_a_child_takes_nothing_from_its_parent", ":") {
        return;
    }
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut socket = Async::new(theirs).unwrap();
    let mut timer = Timer::after(Duration::from_secs(3600));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut timer).poll(&mut cx).is_pending());
    assert!(pin!(socket.read_exact(&mut [0])).poll(&mut cx).is_pending());
    let in_parent = match split() {
        Some(child) => {
            assert_eq!(end_of(child).exit_status(), Some(0));
            true
        }
        None => false,
    };
    if !in_parent {
        let well = catch_unwind(AssertUnwindSafe(|| {
            let error = block_on(socket.readable()).expect_err("it cannot wait here");
            assert!(error.to_string().contains("forked"), "{error}");
            let error = future::block_on(socket.read(&mut [0])).expect_err("it cannot wait here either");
            assert!(error.to_string().contains("forked"), "{error}");
            drop(socket);
            let text = panic_of(|| timer.set_after(Duration::from_millis(1)));
            assert!(text.contains("this timer") && text.contains("forked"), "{text}");
            drop(timer);
            all_is_well();
        }));
        leave(well.is_ok());
    }
    ours.write_all(b"x").unwrap();
    let late = async {
        Timer::after(SOON).await;
        Err(std::io::ErrorKind::TimedOut.into())
    };
    block_on(future::or(socket.read_exact(&mut [0]), late)).expect("the source is still registered");
}

/// Fails if the child waits for threads that are not there: `Pool::assert_not_inherited`, and the look in `shutdown`.
#[test]
fn p10_a_runtime_of_the_parent_says_so() {
    if !is_child("fork::p10_a_runtime_of_the_parent_says_so", ":") {
        return;
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    runtime.block_on(runtime.spawn(async {}));
    in_child(|| {
        for text in [panic_of(|| runtime.spawn(async {})), panic_of(|| runtime.block_on(async {}))] {
            assert!(text.contains("this runtime") && text.contains("forked"), "{text}");
        }
        let start = Instant::now();
        runtime.shutdown(SOON).expect("there is nobody to wait for");
        assert!(start.elapsed() < SOON / 2);
        let own = Runtime::builder().threads(2).build().unwrap();
        own.block_on(own.spawn(async {}));
        all_is_well();
    });
    assert_eq!(runtime.block_on(runtime.spawn(async { 5 })), 5);
    in_child(|| drop(runtime));
}

/// A child that goes on in the `block_on` or task in which it was forked may do so until it has to wait there.
fn aborts(child: Pid) {
    assert_eq!(end_of(child).terminating_signal(), Some(Signal::ABORT.as_raw()));
    all_is_well();
}

/// Fails if the child waits for what it cannot have: `abort_child`.
#[test]
fn p10_a_child_that_waits_in_the_block_on_of_its_parent() {
    if !is_child("fork::p10_a_child_that_waits_in_the_block_on_of_its_parent", "ulimit -c 0") {
        return;
    }
    let child = block_on(async {
        Timer::after(Duration::from_millis(1)).await;
        let child = split();
        if child.is_none() {
            all_is_well();
        }
        Timer::after(Duration::from_millis(1)).await;
        child
    });
    aborts(child.expect("the child does not get here"));
}

/// The same in a task, on the only worker, where other tasks wait for their turn: they are run once, by the parent.
/// Fails without `assert_here` in `Run::poll`.
#[test]
fn p10_a_child_that_waits_in_a_task_of_its_parent() {
    let shell = "export PACELINE_THREADS=1; ulimit -c 0";
    if !is_child("fork::p10_a_child_that_waits_in_a_task_of_its_parent", shell) {
        return;
    }
    const TASKS: usize = 10;
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let child = block_on(spawn(async move {
        let write = |_| {
            let mut theirs = theirs.try_clone().unwrap();
            spawn(async move { theirs.write_all(b"x").unwrap() })
        };
        let tasks: Vec<_> = (0..TASKS).map(write).collect();
        let child = split();
        if child.is_none() {
            all_is_well();
        }
        for task in tasks {
            task.await;
        }
        child
    }));
    aborts(child.expect("the child does not get here"));
    let mut written = Vec::new();
    ours.read_to_end(&mut written).unwrap();
    assert_eq!(written.len(), TASKS);
}

/// A child that leaves the `block_on` in which it was forked without having to wait, by its result or by a panic.
#[test]
fn p10_a_child_that_leaves_the_block_on_of_its_parent() {
    if !is_child("fork::p10_a_child_that_leaves_the_block_on_of_its_parent", ":") {
        return;
    }
    for panics in [false, true] {
        // Tasks keep the workers busy with the pool's locks.
        let busy: Vec<_> = (0..4).map(|_| spawn(wake_often())).collect();
        let mut child = None;
        let forks = async {
            Timer::after(Duration::from_millis(1)).await;
            child = split();
            assert!(!panics || child.is_some(), "on purpose");
        };
        let result = catch_unwind(AssertUnwindSafe(|| block_on(forks)));
        if let Some(child) = child {
            assert_eq!(end_of(child).exit_status(), Some(0));
        } else {
            let well = || {
                assert_eq!(result.is_err(), panics);
                all_is_well();
            };
            leave(catch_unwind(AssertUnwindSafe(well)).is_ok());
        }
        drop(busy);
    }
    all_is_well();
}

/// Goes to sleep and is woken, again and again.
async fn wake_often() {
    loop {
        Timer::after(Duration::from_micros(10)).await;
    }
}

/// A task forks inside of a `block_on` of its own, which returns: the child comes back to a loop that has more tasks. Fails if it
/// has them run: `forks` in `frame`.
#[test]
fn p10_a_child_of_a_nested_block_on_leaves_its_parents_tasks_alone() {
    if is_child("fork::p10_a_child_of_a_nested_block_on_leaves_its_parents_tasks_alone", ":") {
        let parent = std::process::id();
        block_on(async { Timer::after(Duration::from_millis(1)).await });
        let executor = paceline::Executor::new();
        let forks = executor.spawn(async { block_on(async { split() }) });
        let next = executor.spawn(async move {
            if std::process::id() != parent {
                leave(true);
            }
        });
        let child = block_on(executor.run(async {
            next.await;
            forks.await
        }));
        let status = end_of(child.expect("this is the parent"));
        assert_eq!(status.terminating_signal(), Some(Signal::ABORT.as_raw()), "{status:?}");
    }
}
