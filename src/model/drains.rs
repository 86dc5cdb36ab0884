//! Graceful ends: drains beside tasks that end, that wait, that drain as well.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use shuttle::rand::{Rng, thread_rng};

use super::{Latch, explore, foreign_block_on, runtime, spawn, ticks, within};
use crate::{Drained, Runtime, Timer};

/// So late a report may be after the last end, or after the deadline: the threads have to be told, and to end.
const LATE: u32 = 8;

fn counts(report: &Drained) -> (usize, usize, usize) {
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

/// In a task of its own, and from a thread, with a task left that never ends.
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
        let (go, told) = (Latch::new(), Latch::new());
        let inside = runtime.spawn({
            let (drain, go, told) = (runtime.drain(ticks(5)), go.clone(), told.clone());
            async move {
                go.opened().await;
                let report = drain.await;
                told.open();
                report
            }
        });
        let other = spawn("other", {
            let drain = runtime.drain(ticks(900));
            move || foreign_block_on(drain)
        });
        go.open();
        let outside = other.join().expect("it gets the report");
        assert_eq!(counts(&outside), (0, 1, 0));
        told.wait();
        assert_eq!(counts(&foreign_block_on(inside)), (0, 1, 0));
        assert_eq!(Arc::strong_count(&dropped), 1, "its future is dropped");
        dropped.fetch_add(1, Relaxed);
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
