//! [`RuntimeMetrics`]: those of them that are stable.

use std::time::Duration;

use super::Handle;

/// What a runtime does.
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
        self.handle.paceline().metrics().tasks.unwrap_or(0)
    }

    pub fn global_queue_depth(&self) -> usize {
        0
    }

    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        self.check(worker);
        Duration::ZERO
    }

    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.check(worker);
        0
    }

    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        self.check(worker);
        0
    }

    #[track_caller]
    fn check(&self, worker: usize) {
        assert!(worker < self.num_workers(), "there is no worker {worker}");
    }
}
