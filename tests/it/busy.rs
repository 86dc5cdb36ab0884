//! Blocked is not busy: a thread that blocks is replaced; a thread that computes, or waits for its core, is
//! not. The scenarios `added_threads` and `computing` of `src/model` say so exactly.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use paceline::Runtime;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::setups::{Ping, eventually};

/// Computes until it is told to stop.
pub fn compute(stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        std::hint::spin_loop();
    }
}

/// Sets the flag when it is dropped, so that a failed assertion also ends the tasks that compute.
pub struct Stop(pub Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// How much processor time the calling thread has used.
pub fn own_processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// All workers compute, and there are more tasks of that kind: the runtime adds one thread, which serves
/// events and leaves these tasks alone. Fails without a standby (no thread answers).
///
/// Measures that the runtime reads from `/proc` that threads compute, and do not block: a thread that starts
/// late counts as one that blocks, and so does a thread that sleeps for a page. Its exact twins are
/// `tasks_behind_one_that_computes_wait_for_it_although_a_standby_leads` and
/// `a_timer_beside_a_task_that_computes_is_left_to_a_standby` in `src/model/computing.rs`.
#[test]
#[ignore = "timed: how many threads are added beside tasks that compute"]
fn events_are_seen_to_by_one_thread_beside_those_that_compute() {
    // The first round brings the code into memory: a thread that waits for a page of it counts as one that
    // blocks, and the round may take longer than a tenth of a second.
    for (threads, is_measured) in [(2, false), (1, true), (2, true)] {
        let runtime = Runtime::builder().threads(threads).build().unwrap();
        let mut ping = Ping::new(&runtime);
        let (stop, computing) = (Stop(Arc::default()), Arc::new(AtomicUsize::new(0)));
        for _ in 0..4 * threads {
            let (stop, computing) = (stop.0.clone(), computing.clone());
            let computes = async move {
                computing.fetch_add(1, SeqCst);
                compute(&stop);
            };
            runtime.spawn(computes).detach();
        }
        eventually("all workers compute", || computing.load(SeqCst) >= threads);
        // After a tenth of a second one thread more may come.
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {
            ping.ping();
            let metrics = runtime.metrics();
            assert!(!is_measured || metrics.workers <= threads + 2, "{metrics}");
        }
    }
}

/// Returns a core that this process may use.
fn one_core() -> CpuSet {
    let cores = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).unwrap());
    one
}

unsafe extern "C" {
    fn sched_setscheduler(thread: c_int, policy: c_int, priority: *const c_int) -> c_int;
}

/// Sets the scheduling policy of the calling thread: 0 is the usual one, 5 leaves the core to all others.
/// Returns false if the system refuses it.
fn set_policy(policy: c_int) -> bool {
    // SAFETY: the kernel reads one number, the priority, which is 0 for both policies.
    unsafe { sched_setscheduler(0, policy, &0) == 0 }
}

/// Threads that compute on one core, and leave nearly nothing of it to [`starve`](Rivals::starve).
pub struct Rivals(Vec<thread::JoinHandle<()>>, Stop);

impl Rivals {
    pub fn new() -> Self {
        let stop = Stop(Arc::default());
        let rival = |_| {
            let stop = stop.0.clone();
            thread::spawn(move || {
                sched_setaffinity(None, &one_core()).unwrap();
                compute(&stop);
            })
        };
        Self((0..4).map(rival).collect(), stop)
    }

    /// Returns a future that is always runnable, on a thread that gets less than a thousandth of the rivals'
    /// core until they end.
    pub fn starve(&self) -> impl Future<Output = ()> + Send + 'static {
        let stop = self.1.0.clone();
        async move {
            sched_setaffinity(None, &one_core()).unwrap();
            assert!(set_policy(5));
            while !stop.load(SeqCst) {
                thread::yield_now();
            }
            // Without the privilege to take it back, the thread keeps its policy until the runtime ends.
            set_policy(0);
        }
    }

    pub fn end(self) {
        drop(self.1);
        self.0.into_iter().for_each(|rival| rival.join().unwrap());
    }
}
