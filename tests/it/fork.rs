//! A child of `fork` has an instance of its own, or gets a clear error; the child never hangs, and takes
//! nothing from its parent.
//!
//! Each test forks in a process of its own, in which nothing else runs. The child's exit status is its
//! result, and the panic messages of a failing child are the test's output.

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt, future};
use paceline::blocking::{Job, JobError};
use paceline::{Async, Runtime, Strand, Timer, Unblock, block_on, spawn, unblock};
use rustix::process::{Pid, Signal};

use crate::forked_children::{end_of, in_child, leave, split};
use crate::setups::{Latch, OpenOnDrop, SOON, eventually, is_child, text_of};

const HOUR: Duration = Duration::from_secs(3600);

/// Uses workers, sources and timers.
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

/// Returns the message of a panic.
fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("it says that this is another process's");
    text_of(&*panic).to_owned()
}

/// Fails if the child uses workers that exist in the parent only: `Origin` in `pool::instance`.
#[test]
fn a_child_has_a_default_instance_of_its_own() {
    if is_child("fork::a_child_has_a_default_instance_of_its_own", ":") {
        all_is_well();
        in_child(|| {
            all_is_well();
            // A child of this child has one, too.
            in_child(all_is_well);
            all_is_well();
        });
        all_is_well();
    }
}

/// A parent without workers, but with a reactor.
#[test]
fn a_child_of_a_program_that_only_calls_block_on_has_an_instance_too() {
    if is_child("fork::a_child_of_a_program_that_only_calls_block_on_has_an_instance_too", ":") {
        let wait = || block_on(async { Timer::after(Duration::from_millis(1)).await });
        wait();
        in_child(|| {
            wait();
            all_is_well();
        });
        wait();
    }
}

/// The child drops its copies of a source and a timer, and tries to wait with others. Fails if that removes
/// the source from the shared epoll instance (`Reactor::deregister`), or waits there (`Reactor::note_wait`).
#[test]
fn a_child_takes_nothing_from_its_parent() {
    if !is_child("fork::a_child_takes_nothing_from_its_parent", ":") {
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
    // Hangs if the source is not registered any more.
    block_on(socket.read_exact(&mut [0])).unwrap();
}

/// Fails if the child waits for threads of the parent: `Pool::assert_not_inherited`, and the check in
/// `shutdown`.
#[test]
fn a_runtime_of_the_parent_says_so() {
    if !is_child("fork::a_runtime_of_the_parent_says_so", ":") {
        return;
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    runtime.block_on(runtime.spawn(async {}));
    in_child(|| {
        for text in [panic_of(|| runtime.spawn(async {})), panic_of(|| runtime.block_on(async {}))] {
            assert!(text.contains("this runtime") && text.contains("forked"), "{text}");
        }
        runtime.shutdown(SOON).expect("there is no thread to wait for");
        let own = Runtime::builder().threads(2).build().unwrap();
        own.block_on(own.spawn(async {}));
        all_is_well();
    });
    assert_eq!(runtime.block_on(runtime.spawn(async { 5 })), 5);
    in_child(|| drop(runtime));
}

/// A child that continues in the `block_on` or task in which it was forked may do so until it has to wait
/// there.
fn aborts(child: Pid) {
    assert_eq!(end_of(child).terminating_signal(), Some(Signal::ABORT.as_raw()));
    all_is_well();
}

/// Fails if the child waits for events that it cannot get: `abort_child`.
#[test]
fn a_child_that_waits_in_the_block_on_of_its_parent_is_aborted() {
    if !is_child("fork::a_child_that_waits_in_the_block_on_of_its_parent_is_aborted", "ulimit -c 0") {
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

/// The same in a task, on the only worker, while other tasks wait for their turn: only the parent runs them.
/// Fails without `assert_here` in `Run::poll`.
#[test]
fn a_child_that_waits_in_a_task_of_its_parent_is_aborted() {
    let shell = "export PACELINE_THREADS=1; ulimit -c 0";
    if !is_child("fork::a_child_that_waits_in_a_task_of_its_parent_is_aborted", shell) {
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

/// A child leaves the `block_on` in which it was forked without a wait, by its result or by a panic.
#[test]
fn a_child_may_leave_the_block_on_of_its_parent() {
    if !is_child("fork::a_child_may_leave_the_block_on_of_its_parent", ":") {
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

/// Sleeps and is woken, again and again.
async fn wake_often() {
    loop {
        Timer::after(Duration::from_micros(10)).await;
    }
}

/// A task forks inside of a nested `block_on`, which returns: the child comes back to a loop that has more
/// tasks. Fails if the child runs these: `forks` in `frame`.
#[test]
fn a_child_of_a_nested_block_on_leaves_its_parents_tasks_alone() {
    if is_child("fork::a_child_of_a_nested_block_on_leaves_its_parents_tasks_alone", ":") {
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

/// An object in use on a thread of the parent returns an error, or panics if no error can be returned; so
/// does a job. None of them waits for that thread, or for a lock that it holds. Fails, by the watchdog of the
/// child, without the origins in `blocking`.
#[test]
fn what_blocks_on_a_thread_of_the_parent_says_so() {
    if !is_child("fork::what_blocks_on_a_thread_of_the_parent_says_so", ":") {
        return;
    }
    let in_use = || {
        let mut stream = Unblock::with_capacity(16, std::io::repeat(7));
        block_on(stream.read_exact(&mut [0])).unwrap();
        stream
    };
    let (mut reads, taken_out, written, dropped) = (in_use(), in_use(), in_use(), in_use());
    let mut items = Unblock::with_capacity(2, 0..);
    assert_eq!(block_on(items.next()), Some(0));
    let latch = Latch::new();
    let _free = OpenOnDrop(latch.clone());
    let job = || {
        let latch = latch.clone();
        Job::new(move || latch.wait()).name("blocks").deadline(HOUR).submit()
    };
    let (awaited, detached, cancelled) = (job(), job(), job());
    let done = Job::new(|| 1).submit();
    eventually("one job is done", || done.is_finished());
    in_child(|| {
        for _ in 0..2 {
            let error = block_on(reads.read(&mut [0; 64])).expect_err("it is on a thread of the parent's");
            assert!(error.to_string().contains("forked"), "{error}");
        }
        assert!(panic_of(|| block_on(taken_out.into_inner())).contains("forked"));
        let mut written = written;
        assert!(panic_of(|| block_on(written.with_mut(|_| ()))).contains("forked"));
        assert!(panic_of(|| block_on(items.next())).contains("forked"));
        drop((dropped, reads));
        let error = block_on(awaited).expect_err("it runs in the parent");
        assert!(
            matches!(error, JobError::Inherited { .. }) && error.to_string().contains("forked"),
            "{error}"
        );
        detached.detach();
        cancelled.cancel();
        drop(cancelled);
        assert_eq!(block_on(done), Ok(1));
        // New objects work, and so do inherited ones that were not in use.
        assert_eq!(block_on(unblock(|| 1)), 1);
        assert_eq!(block_on(Job::new(|| 1).submit()), Ok(1));
        all_is_well();
    });
}

/// Inherited objects that cannot report an error, in a child that does nothing else: the child does not wait
/// for them. Fails, by the watchdog, without the check in `Rider::idle`.
#[cfg(target_os = "linux")]
#[test]
fn a_lone_child_does_not_wait_for_what_its_parent_does() {
    if !is_child("fork::a_lone_child_does_not_wait_for_what_its_parent_does", ":") {
        return;
    }
    let latch = Latch::new();
    let _free = OpenOnDrop(latch.clone());
    let (begun, for_strand) = (Latch::new(), (latch.clone(), latch.clone()));
    let strand = Strand::new(0);
    let (inside, is_inside) = (strand.clone(), begun.clone());
    std::thread::spawn(move || {
        inside.post(move |_| {
            is_inside.open();
            for_strand.0.wait();
        });
    });
    begun.wait();
    let task = spawn(Timer::after(HOUR));
    let closure = unblock(move || for_strand.1.wait());
    let texts = || {
        let with = panic_of(|| block_on(strand.with(|state| *state)));
        [panic_of(|| block_on(task)), panic_of(|| block_on(closure)), with]
    };
    in_child(|| {
        for text in texts() {
            assert!(text.contains("forked"), "{text}");
        }
        all_is_well();
    });
}
