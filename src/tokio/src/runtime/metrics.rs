//! [`RuntimeMetrics`]: the stable ones.

use std::time::Duration;

use super::Handle;

/// The metrics of a runtime.
#[derive(Clone, Debug)]
pub struct RuntimeMetrics {
    handle: Handle,
}

impl RuntimeMetrics {
    pub(crate) fn of(handle: Handle) -> Self {
        Self { handle }
    }

    pub fn num_workers(&self) -> usize {
        self.handle.shared.config.workers
    }

    pub fn num_alive_tasks(&self) -> usize {
        self.handle.shared.metrics().tasks.unwrap_or(0)
    }

    /// Always zero: paceline does not report it.
    pub fn global_queue_depth(&self) -> usize {
        0
    }

    /// Always zero: paceline does not measure it.
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        self.check(worker);
        Duration::ZERO
    }

    /// paceline counts this for all workers together; each worker is assigned a share here.
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.check(worker);
        self.handle.shared.metrics().sleeps.div_ceil(self.num_workers() as u64)
    }

    /// As if all workers were awake.
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        self.worker_park_count(worker) * 2
    }

    #[track_caller]
    fn check(&self, worker: usize) {
        assert!(worker < self.num_workers(), "there is no worker {worker}");
    }
}
