//! Many jobs, of which every tenth returns only at the end.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use paceline::Runtime;
use paceline::blocking::{Job, JobError};

use crate::setups::{eventually, is_child};

/// Fewer than there are bad jobs.
const POOL: usize = 2;
const JOBS: usize = 40;
const BAD: usize = JOBS / 10;

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

/// Each caller has its answer although more jobs hang than the pool has threads, and in the end the process
/// is as before. Hangs without replacements for lost threads, and without a watch over the deadlines.
#[test]
fn jobs_that_never_return_cost_a_thread_each_and_nothing_else() {
    if !is_child("hanging_jobs::jobs_that_never_return_cost_a_thread_each_and_nothing_else", ":") {
        return;
    }
    let runtime = Runtime::builder().threads(2).blocking_threads(POOL).build().unwrap();
    let (gate, alive) = (Arc::new(RwLock::new(())), Arc::<AtomicUsize>::default());
    let closed = gate.write().unwrap();
    let threads_before = threads();
    let calls: Vec<_> = (0..JOBS)
        .map(|number| {
            let (gate, alive) = (gate.clone(), alive.clone());
            runtime.spawn(async move {
                if number % 10 == 0 {
                    hangs(&gate, &alive).await
                } else {
                    let cargo = Cargo::new(&alive);
                    let job = Job::new(move || (number, cargo)).deadline(Duration::from_secs(3600));
                    assert_eq!(job.submit().await.map(|(number, _)| number), Ok(number));
                }
            })
        })
        .collect();
    calls.into_iter().for_each(|call| runtime.block_on(call));

    let metrics = runtime.metrics();
    assert_eq!((metrics.blocking_lost, metrics.blocking_queued), (BAD, 0), "{metrics}");
    assert!(metrics.blocking_threads <= POOL, "{metrics}");
    eventually("what the good ones had is dropped", || alive.load(SeqCst) == BAD);
    drop(closed);
    eventually("the lost ones are back", || runtime.metrics().blocking_lost == 0);
    eventually("what they returned is dropped", || alive.load(SeqCst) == 0);
    eventually("all threads are gone", || runtime.metrics().blocking_threads == 0);
    eventually("no timer is left", || runtime.metrics().timers == 0);
    eventually("the system knows of it", || threads() <= threads_before);
}

/// Waits for a job that waits for the gate, which is closed. A job whose thread has no core before the
/// deadline never begins, and is submitted again.
async fn hangs(gate: &Arc<RwLock<()>>, alive: &Arc<AtomicUsize>) {
    loop {
        let (tell, told) = async_channel::bounded(1);
        let (gate, cargo) = (gate.clone(), Cargo::new(alive));
        let job = Job::new(move || {
            tell.try_send(()).unwrap();
            drop(gate.read().unwrap_or_else(PoisonError::into_inner));
            cargo
        });
        let answer = job.deadline(Duration::from_millis(20)).submit().await;
        assert!(matches!(answer, Err(JobError::TimedOut { .. })));
        if told.recv().await.is_ok() {
            return;
        }
    }
}
