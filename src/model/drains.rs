//! Graceful ends: drains beside tasks that end, that wait, that drain as well.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use shuttle::rand::{Rng, thread_rng};

use super::{Latch, explore, foreign_block_on, runtime, sleep, spawn, ticks, within};
use crate::blocking::unblock;
use crate::sync::thread;
use crate::{DrainReport, Runtime, Timer};

/// How late a report may be after the last end, or after the deadline, in ticks: threads have to be told, and
/// to end.
const LATE: u32 = 8;

fn counts(report: &DrainReport) -> (usize, usize, usize) {
    (report.finished, report.cancelled, report.stuck.len())
}

/// Tasks that end one after the other, or all at once.
fn short_tasks(runtime: &Runtime, number: usize) {
    for _ in 0..number {
        let after = thread_rng().gen_range(0..3);
        runtime.spawn(Timer::after(ticks(after))).detach();
    }
}

#[test]
fn the_last_end_is_not_missed() {
    explore(3_500, || {
        let runtime = runtime(2, 2);
        short_tasks(&runtime, 4);
        let report = within(3 + LATE, "a drain", || foreign_block_on(runtime.drain(ticks(1_000))));
        assert_eq!((report.cancelled, report.stuck.len()), (0, 0));
    });
}

/// In a task of its own, which is cancelled, and from a thread, with a task left that never ends.
#[test]
fn from_two_roles_at_once() {
    explore(3_500, || {
        let runtime = Arc::new(runtime(2, 2));
        let dropped = Arc::new(AtomicUsize::new(0));
        let one = dropped.clone();
        runtime
            .spawn(async move {
                let _one = one;
                pending::<()>().await
            })
            .detach();
        let go = Latch::new();
        let inside = runtime.spawn({
            let (drain, go) = (runtime.drain(ticks(5)), go.clone());
            async move {
                go.opened().await;
                drain.await
            }
        });
        let other = spawn("other", {
            let drain = runtime.drain(ticks(900));
            move || foreign_block_on(drain)
        });
        go.open();
        let outside = other.join().expect("it gets the report");
        assert_eq!(counts(&outside), (0, 2, 0));
        assert!(foreign_block_on(inside.fallible()).is_none(), "it is cancelled");
        assert_eq!(Arc::strong_count(&dropped), 1, "its future is dropped");
        dropped.fetch_add(1, Relaxed);
    });
}

/// Tasks begin to wait for the report at the moment at which others end: the last end is noticed all the
/// same. Fails if a waiter is told of the first of two ends after the second.
#[test]
fn the_last_end_is_not_missed_beside_tasks_that_begin_to_wait() {
    explore(3_500, || {
        let runtime = Arc::new(runtime(2, 2));
        short_tasks(&runtime, 2);
        let go = Latch::new();
        let inside = [0, 1].map(|_| {
            let (drain, go, begun) = (runtime.drain(ticks(1_000)), go.clone(), Latch::new());
            let has_begun = begun.clone();
            let task = runtime.spawn(async move {
                has_begun.open();
                // Each on a worker of its own, so that they ask at the same time.
                go.wait();
                drain.await
            });
            (task, begun)
        });
        inside.iter().for_each(|(_, begun)| begun.wait());
        go.open();
        let drain = runtime.drain(ticks(1_000));
        let report = within(3 + LATE, "a drain", || foreign_block_on(drain));
        assert!(report.cancelled <= inside.len() && report.stuck.is_empty());
    });
}

/// The runtime is dropped beside it.
#[test]
fn beside_a_drop() {
    explore(3_500, || {
        let runtime = runtime(1, 2);
        short_tasks(&runtime, 2);
        let drain = runtime.drain(ticks(900));
        let other =
            spawn("other", move || within(LATE + 3, "a drain beside a drop", || foreign_block_on(drain)));
        drop(runtime);
        assert_eq!(other.join().expect("it gets the report").stuck.len(), 0);
    });
}

/// The last end is that of a closure, or of the task that waits for it.
#[test]
fn the_last_end_of_a_closure_is_not_missed() {
    explore(3_500, || {
        let runtime = runtime(1, 2);
        let ran = Arc::new(AtomicUsize::new(0));
        let begun = Latch::new();
        let (has_begun, all) = (begun.clone(), ran.clone());
        runtime
            .spawn(async move {
                let closures = [0, 1].map(|_| {
                    let one = all.clone();
                    unblock(move || _ = one.fetch_add(1, Relaxed))
                });
                has_begun.open();
                let [awaited, left] = closures;
                left.detach();
                awaited.await;
            })
            .detach();
        begun.wait();
        let report = within(LATE + 3, "a drain", || foreign_block_on(runtime.drain(ticks(1_000))));
        assert!(report.is_clean());
        assert_eq!(ran.load(Relaxed), 2);
    });
}

/// The system has no threads for a while: the caller of a shutdown conducts the end, and drops what is left.
#[test]
fn a_shutdown_without_a_conductor() {
    explore(3_500, || {
        let runtime = runtime(1, 1);
        short_tasks(&runtime, 2);
        sleep(1);
        thread::fail_starts(thread_rng().gen_range(1..4));
        runtime.shutdown(ticks(50)).expect("nothing blocks");
        thread::fail_starts(0);
        assert_eq!(runtime.metrics().tasks, Some(0));
    });
}
