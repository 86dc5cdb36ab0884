//! A thousand jobs, of which every tenth returns only at the end.
//!
//! The jobs come one by one, so fast that some ten of the pool's twenty threads are in bad jobs at any time,
//! and so slowly that the other threads can do the rest. The test prints its measurements. Built for release,
//! with a deadline of 100 ms:
//!
//! ```text
//! PACELINE_TEST_CHILD=hanging_jobs::a_hundred_jobs_that_never_return_cost_a_hundred_threads_and_nothing_else \
//!     cargo test --release --test it -- hanging_jobs:: --nocapture
//! ```

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use paceline::Runtime;
use paceline::blocking::{Job, JobError};

use crate::setups::{eventually, is_child};

const POOL: usize = 20;
const JOBS: usize = 1000;
/// How long a good job blocks.
const WORK: Duration = Duration::from_millis(2);
/// In a slow build, on a machine with other programs, a thread may be late by some tenths of a second, and a
/// good job must not fail.
const IS_SLOW: bool = cfg!(debug_assertions);
const DEADLINE: Duration = Duration::from_millis(if IS_SLOW { 500 } else { 100 });
const PACE: Duration = Duration::from_millis(if IS_SLOW { 5 } else { 1 });
const LATE: Duration = Duration::from_millis(500);
/// The size of a job's captures: large enough to be returned to the system when they are dropped.
const CARGO: usize = 256 << 10;

/// A run of all jobs.
struct Run {
    /// From the first submission to the last answer of a good job.
    took: Duration,
    /// From submission to answer: of the good jobs, and of the bad ones, in order.
    good: Vec<Duration>,
    bad: Vec<Duration>,
    /// Counts the jobs that were dropped completely.
    gone: Arc<AtomicUsize>,
}

struct Gone(Arc<AtomicUsize>, Vec<u8>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Every tenth job waits for the gate, if there is one, and has not returned when this function returns.
fn run(runtime: &Runtime, gate: Option<&Arc<RwLock<()>>>) -> Run {
    let (gone, answers) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<_>>>::default());
    let start = Instant::now();
    let calls: Vec<_> = (0..JOBS)
        .map(|number| {
            let at = start + PACE * number as u32;
            thread::sleep(at.saturating_duration_since(Instant::now()));
            let gate = gate.filter(|_| number % 10 == 0).cloned();
            let (is_bad, cargo) = (gate.is_some(), Gone(gone.clone(), vec![1; CARGO]));
            let answers = answers.clone();
            runtime.spawn(async move {
                let start = Instant::now();
                let job = Job::new(move || {
                    match gate {
                        Some(gate) => drop(gate.read().unwrap_or_else(PoisonError::into_inner)),
                        None => thread::sleep(WORK),
                    }
                    (number, cargo)
                });
                match job.deadline(DEADLINE).submit().await {
                    Ok((answer, cargo)) => {
                        assert_eq!((answer, is_bad, cargo.1.len()), (number, false, CARGO))
                    }
                    Err(JobError::TimedOut { .. }) => assert!(is_bad, "a good one is late"),
                    Err(error) => panic!("{error}"),
                }
                answers.lock().unwrap().push((is_bad, start.elapsed(), Instant::now()));
            })
        })
        .collect();
    calls.into_iter().for_each(|call| runtime.block_on(call));
    let answers = answers.lock().unwrap().clone();
    let times = |wanted: bool| {
        let mut times: Vec<_> =
            answers.iter().filter(|(is_bad, ..)| *is_bad == wanted).map(|(_, took, _)| *took).collect();
        times.sort();
        times
    };
    let last = answers.iter().filter(|(is_bad, ..)| !is_bad).map(|(.., at)| *at).max();
    Run { took: last.expect("most are good") - start, good: times(false), bad: times(true), gone }
}

/// Reads a number from the process's status, in KiB for sizes.
fn status(field: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("there is such a line");
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns the resident memory in KiB, without memory that the allocator only keeps.
fn memory() -> usize {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: `malloc_trim` may be called at any time.
        unsafe { malloc_trim(0) };
    }
    status("VmRSS")
}

/// All other jobs are served as if the bad ones were not there, each caller has its answer in time, and in
/// the end the process is as before. Without replacements for lost threads the twentieth bad job stops the
/// pool; without a watch over the deadlines the first one stops its caller.
#[test]
fn a_hundred_jobs_that_never_return_cost_a_hundred_threads_and_nothing_else() {
    if !is_child(
        "hanging_jobs::a_hundred_jobs_that_never_return_cost_a_hundred_threads_and_nothing_else",
        ":",
    ) {
        return;
    }
    let runtime = Runtime::builder().threads(2).blocking_threads(POOL).build().unwrap();
    let alone = run(&runtime, None);
    eventually("all threads are gone", || runtime.metrics().blocking_threads == 0);
    eventually("nothing is left", || alone.gone.load(SeqCst) == JOBS);
    let threads_before = status("Threads");

    // Twice, because the first run leaves memory in use: the threads' arenas, and stacks that are kept for
    // the next threads.
    let [(_, memory_before), (beside, memory)] = [(); 2].map(|()| {
        let gate = Arc::new(RwLock::new(()));
        let closed = gate.write().unwrap();
        let beside = run(&runtime, Some(&gate));
        let metrics = runtime.metrics();
        assert_eq!((metrics.blocking_lost, metrics.blocking_queued), (100, 0), "{metrics}");
        assert!(metrics.blocking_threads <= POOL, "{metrics}");
        eventually("what the good ones had is dropped", || beside.gone.load(SeqCst) == 900);
        drop(closed);
        eventually("the lost ones are back", || runtime.metrics().blocking_lost == 0);
        eventually("what they returned is dropped", || beside.gone.load(SeqCst) == JOBS);
        eventually("all threads are gone", || runtime.metrics().blocking_threads == 0);
        eventually("no timer is left", || runtime.metrics().timers == 0);
        eventually("the system knows of it", || status("Threads") <= threads_before);
        (beside, memory())
    });

    // Without the share of the bad jobs.
    let [with, without] = [&beside, &alone].map(|run| 900.0 / run.took.as_secs_f64());
    println!(
        "deadline {DEADLINE:?}: a bad one is answered after {:?} at p50, {:?} at p99, {:?} at most; a good one after {:?} at p50, {:?} at \
         p99 (without bad ones {:?}, {:?}); good ones a second: {with:.1} (without bad ones {without:.1}); memory {memory} KiB, before {memory_before} KiB; \
         {threads_before} threads",
        beside.bad[49],
        beside.bad[98],
        beside.bad[99],
        beside.good[449],
        beside.good[890],
        alone.good[499],
        alone.good[989],
    );
    assert_eq!((alone.good.len(), alone.bad.len(), beside.good.len(), beside.bad.len()), (JOBS, 0, 900, 100));
    assert!(beside.bad[0] >= DEADLINE && beside.bad[98] < DEADLINE + LATE, "p99 is {:?}", beside.bad[98]);
    assert!(with >= 0.9 * without, "{with} good ones a second, {without} without bad ones");
    // The sanitizers keep freed memory, and reserve terabytes for their own data.
    let is_sanitized = status("VmSize") > 1 << 30;
    assert!(
        is_sanitized || memory < memory_before + 25 * (CARGO >> 10),
        "{memory} KiB, {memory_before} before"
    );
}
