//! Jobs that return only at the end, and others that wait behind them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use paceline::Runtime;
use paceline::blocking::{Job, JobError};

use crate::blocking::within;
use crate::jobs::begun;
use crate::setups::{Latch, OpenOnDrop, eventually, is_child};

const POOL: usize = 2;
const ROUNDS: usize = 2;
const GOOD: usize = 18;

/// Part of a job's captures and of its result.
struct Cargo(Arc<AtomicUsize>);

impl Cargo {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Cargo {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Returns how many threads the process has.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// In each round a job that hangs takes each thread of the pool, and then others come, which are all done. In
/// the end the process is as before. Hangs without replacements for lost threads, and without a watch over
/// the deadlines.
#[test]
fn jobs_that_never_return_cost_a_thread_each_and_nothing_else() {
    if !is_child("hanging_jobs::jobs_that_never_return_cost_a_thread_each_and_nothing_else", ":") {
        return;
    }
    let runtime = Runtime::builder().threads(2).blocking_threads(POOL).build().unwrap();
    let threads_before = threads();
    let (gate, alive) = (Latch::new(), Arc::<AtomicUsize>::default());
    let _open = OpenOnDrop(gate.clone());
    for _ in 0..ROUNDS {
        let bad = [(); POOL].map(|()| {
            begun(&runtime, Duration::from_millis(50), |begins| {
                let (wait, cargo) = (gate.clone(), Cargo::new(&alive));
                move || {
                    begins();
                    wait.wait();
                    cargo
                }
            })
        });
        let good = [(); GOOD].map(|()| {
            let cargo = Cargo::new(&alive);
            within(&runtime, || Job::new(move || cargo).timeout(Duration::from_secs(3600)).submit())
        });
        good.into_iter().for_each(|job| assert!(runtime.block_on(job).is_ok()));
        for job in bad {
            assert!(matches!(runtime.block_on(job), Err(JobError::TimedOut { .. })));
        }
    }

    let metrics = runtime.metrics();
    assert_eq!((metrics.blocking_lost, metrics.blocking_queued), (ROUNDS * POOL, 0), "{metrics}");
    assert!(metrics.blocking_threads <= POOL, "{metrics}");
    assert_eq!(alive.load(SeqCst), ROUNDS * POOL, "what the good ones had is dropped");
    gate.open();
    eventually("the lost ones are back", || runtime.metrics().blocking_lost == 0);
    eventually("what they returned is dropped", || alive.load(SeqCst) == 0);
    eventually("all threads are gone", || runtime.metrics().blocking_threads == 0);
    eventually("no timer is left", || runtime.metrics().timers == 0);
    eventually("the system knows of it", || threads() <= threads_before);
}
