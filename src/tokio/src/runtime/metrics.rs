//! [`RuntimeMetrics`]: the stable ones.

use std::time::Duration;

use super::Handle;

/// The metrics of a runtime.
#[derive(Clone, Debug)]
pub struct RuntimeMetrics {
    pub(super) handle: Handle,
}

impl RuntimeMetrics {
    pub(crate) fn of(handle: Handle) -> Self {
        let shared = &handle.shared;
        shared.workers.ask(|| shared.load());
        Self { handle }
    }

    pub fn num_workers(&self) -> usize {
        self.handle.shared.config.workers
    }

    pub fn num_alive_tasks(&self) -> usize {
        self.handle.shared.metrics().tasks.unwrap_or(0)
    }

    /// Returns the number of tasks that wait in the queue of all workers. In a current-thread runtime, that
    /// queue is the worker's while a thread is in `block_on`.
    pub fn global_queue_depth(&self) -> usize {
        let shared = &self.handle.shared;
        if shared.keeps_one_queue() { 0 } else { shared.load().injected }
    }

    /// Returns the processor time of the worker's threads, on Linux. For a current-thread runtime, time is
    /// counted from the first call of `metrics` on.
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        self.check(worker);
        self.handle.shared.figures(worker).busy
    }

    /// paceline counts this for all workers together; each worker is assigned a share here.
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.check(worker);
        self.share(self.handle.shared.metrics().sleeps)
    }

    /// As if all workers were awake.
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        self.worker_park_count(worker) * 2
    }

    /// Returns a worker's share of a count.
    pub(super) fn share(&self, count: u64) -> u64 {
        count.div_ceil(self.num_workers() as u64)
    }

    #[track_caller]
    pub(super) fn check(&self, worker: usize) {
        assert!(worker < self.num_workers(), "there is no worker {worker}");
    }
}
