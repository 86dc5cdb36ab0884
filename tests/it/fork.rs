//! A child of `fork` that uses a runtime of its parent is aborted with a message; it never hangs, and takes
//! nothing from its parent. A runtime that it builds works.
//!
//! Each test forks in a process of its own, in which nothing else runs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use paceline::{Async, Handle, Runtime, Timer, block_on, spawn, unblock};
use rustix::process::{Pid, Signal};

use crate::forked_children::{end_of, in_child, leave, lock_allocator, split};
use crate::setups::{SOON, is_child};

const HOUR: Duration = Duration::from_secs(3600);

async fn all_is_well() {
    let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
    let write = spawn(async move {
        Timer::after(Duration::from_millis(1)).await;
        one.write_all(b"x").await.unwrap();
        unblock(|| 1).await
    });
    other.read_exact(&mut [0]).await.unwrap();
    assert_eq!(write.await + spawn(async { 1 }).await, 2);
}

/// Checks that the child was aborted, and that the parent's default instance works.
fn aborts(what: &str, child: Pid) {
    let end = end_of(child);
    assert_eq!(end.terminating_signal(), Some(Signal::ABORT.as_raw()), "{what}: {end:?}");
    block_on(all_is_well());
}

/// Forks for each use, and checks that it aborts the child. `prepare` runs in the child before.
fn each_aborts(uses: &[(&str, &dyn Fn())], prepare: fn()) {
    for (what, uses) in uses {
        match split() {
            Some(child) => aborts(what, child),
            None => {
                prepare();
                uses();
                leave(true);
            }
        }
    }
}

/// Fails if a call goes on in a child: it waits for threads that exist in the parent only.
#[test]
fn a_child_that_uses_a_runtime_of_its_parent_is_aborted() {
    if !is_child("fork::a_child_that_uses_a_runtime_of_its_parent_is_aborted", "ulimit -c 0") {
        return;
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    runtime.block_on(all_is_well());
    block_on(all_is_well());
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let source = Async::new(theirs).unwrap();
    let handle = runtime.handle();
    let uses: [(&str, &dyn Fn()); 10] = [
        // A timer that is due at the first poll needs no runtime.
        ("block_on of a timer", &|| _ = block_on(Timer::after(HOUR))),
        ("block_on for ever", &|| block_on(std::future::pending())),
        ("spawn", &|| spawn(async {}).detach()),
        ("unblock", &|| unblock(|| ()).detach()),
        ("registering", &|| drop(Async::new(UnixStream::pair().unwrap().0))),
        ("readable", &|| drop(pollster::block_on(source.readable()))),
        ("timer", &|| _ = pollster::block_on(Timer::after(HOUR))),
        ("Runtime::spawn", &|| runtime.spawn(async {}).detach()),
        ("Runtime::block_on", &|| runtime.block_on(async {})),
        ("Handle::enter", &|| drop(handle.enter())),
    ];
    each_aborts(&uses, || ());
    assert_eq!(Handle::current().block_on(async { 5 }), 5);
}

/// Fails if the message is made in memory that is allocated.
#[test]
fn a_child_whose_allocator_is_locked_is_aborted() {
    if !is_child("fork::a_child_whose_allocator_is_locked_is_aborted", "ulimit -c 0") {
        return;
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let handle = runtime.handle();
    let socket = UnixStream::pair().unwrap().0;
    let source = Async::new(&socket).unwrap();
    block_on(all_is_well());
    // The other uses allocate before they come to a runtime.
    let uses: [(&str, &dyn Fn()); 6] = [
        ("spawn", &|| spawn(async {}).detach()),
        ("registering", &|| drop(Async::new(&socket))),
        ("readable", &|| _ = source.poll_readable(&mut Context::from_waker(Waker::noop()))),
        ("Runtime::spawn", &|| runtime.spawn(async {}).detach()),
        ("Runtime::block_on", &|| runtime.block_on(async {})),
        ("Handle::enter", &|| drop(handle.enter())),
    ];
    each_aborts(&uses, lock_allocator);
}

/// The child drops its copies of a source, a timer and a runtime. Fails if that removes the source from the
/// shared epoll instance (`Reactor::deregister`), or waits for threads (`Runtime::drop`).
#[test]
fn a_child_that_drops_what_it_inherited_takes_nothing_from_its_parent() {
    if !is_child("fork::a_child_that_drops_what_it_inherited_takes_nothing_from_its_parent", ":") {
        return;
    }
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let mut socket = Async::new(theirs).unwrap();
    let mut timer = Timer::after(HOUR);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut timer).poll(&mut cx).is_pending());
    assert!(pin!(socket.read_exact(&mut [0])).poll(&mut cx).is_pending());
    match split() {
        Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
        None => {
            runtime.shutdown(SOON).expect("there is no thread to wait for");
            drop((socket, timer, runtime));
            leave(true);
        }
    }
    ours.write_all(b"x").unwrap();
    // Hangs if the source is not registered any more.
    block_on(socket.read_exact(&mut [0])).unwrap();
    runtime.block_on(all_is_well());
}

#[test]
fn a_child_may_build_a_runtime() {
    if is_child("fork::a_child_may_build_a_runtime", ":") {
        block_on(all_is_well());
        in_child(|| {
            assert_eq!(block_on(async { 7 }), 7, "a future that is ready needs no runtime");
            for threads in [1, 2] {
                Runtime::builder().threads(threads).build().unwrap().block_on(all_is_well());
            }
            let runtime = Runtime::builder().current_thread().build().unwrap();
            runtime.block_on(all_is_well());
            // A child of this child may, too.
            in_child(|| Runtime::builder().threads(1).build().unwrap().block_on(all_is_well()));
            runtime.block_on(all_is_well());
        });
        block_on(all_is_well());
    }
}

/// The child comes back to the `block_on` in which it was forked, to wait there or with its result.
#[test]
fn a_child_that_comes_back_to_the_block_on_of_its_parent_is_aborted() {
    if !is_child("fork::a_child_that_comes_back_to_the_block_on_of_its_parent_is_aborted", "ulimit -c 0") {
        return;
    }
    for waits in [false, true] {
        let child = block_on(async {
            Timer::after(Duration::from_millis(1)).await;
            let child = split();
            if child.is_none() {
                Runtime::builder().threads(1).build().unwrap().block_on(all_is_well());
            }
            if waits {
                Timer::after(Duration::from_millis(1)).await;
            }
            child
        });
        let what = if waits { "a wait after the fork" } else { "a result after the fork" };
        aborts(what, child.expect("the child does not get here"));
    }
}

/// The same in a task, on the only worker, while other tasks wait for their turn: only the parent runs them.
/// Fails without `note_fork` in `frame`.
#[test]
fn a_child_that_comes_back_to_a_task_runs_no_task_of_its_parent() {
    let shell = "export PACELINE_THREADS=1; ulimit -c 0";
    if !is_child("fork::a_child_that_comes_back_to_a_task_runs_no_task_of_its_parent", shell) {
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
        for task in tasks {
            task.await;
        }
        child
    }));
    aborts("a task", child.expect("the child does not get here"));
    let mut written = Vec::new();
    ours.read_to_end(&mut written).unwrap();
    assert_eq!(written.len(), TASKS);
}
