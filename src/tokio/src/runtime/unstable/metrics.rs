//! The metrics behind `tokio_unstable`. Counts that paceline keeps for all workers together are shared out
//! evenly, so that their sum is right.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use super::Extras;
use super::histogram::Histogram;
use crate::runtime::{RuntimeFlavor, RuntimeMetrics};

/// Numbers of the moment. After the shutdown of the runtime they are zero.
impl RuntimeMetrics {
    pub fn num_blocking_threads(&self) -> usize {
        self.now(|metrics| metrics.blocking_threads)
    }

    pub fn num_idle_blocking_threads(&self) -> usize {
        self.now(|metrics| metrics.blocking_idle)
    }

    pub fn blocking_queue_depth(&self) -> usize {
        self.now(|metrics| metrics.blocking_queued)
    }

    #[deprecated = "Renamed to num_alive_tasks"]
    pub fn active_tasks_count(&self) -> usize {
        self.num_alive_tasks()
    }

    #[deprecated = "Renamed to global_queue_depth"]
    #[doc(hidden)]
    pub fn injection_queue_depth(&self) -> usize {
        self.global_queue_depth()
    }

    /// Returns the number of tasks that only this worker polls next, as long as it does not block. In a
    /// current-thread runtime these are all, while a thread is in `block_on`.
    pub fn worker_local_queue_depth(&self, worker: usize) -> usize {
        self.check(worker);
        let load = self.handle.shared.load();
        let queued = self.handle.shared.workers.queued(worker, &load);
        if self.handle.shared.keeps_one_queue() { queued + load.injected } else { queued }
    }

    /// Returns the thread that was the latest to become this worker: a replacement, if the one before it
    /// blocks.
    pub fn worker_thread_id(&self, worker: usize) -> Option<ThreadId> {
        self.check(worker);
        self.handle.shared.workers.thread(worker)
    }

    fn now(&self, number: impl FnOnce(paceline::Metrics) -> usize) -> usize {
        let shared = &self.handle.shared;
        if shared.is_shut_down() { 0 } else { number(shared.metrics()) }
    }
}

/// Counts of what has happened so far.
impl RuntimeMetrics {
    pub fn spawned_tasks_count(&self) -> u64 {
        self.handle.shared.load().spawned
    }

    /// Returns an estimate of how many tasks went through the queue of all workers, the highest so far.
    /// In a current-thread runtime, which has no other
    /// queue, the tasks that other threads spawned.
    pub fn remote_schedule_count(&self) -> u64 {
        let load = self.handle.shared.load();
        match self.handle.shared.config.flavor {
            RuntimeFlavor::CurrentThread => self.extras().spawned_elsewhere.load(Ordering::Relaxed),
            RuntimeFlavor::MultiThread => {
                highest(&self.extras().remote_schedules, load.taken + load.injected as u64)
            }
        }
    }

    /// Counts the yields in all runtimes of the process, since this one was built.
    pub fn budget_forced_yield_count(&self) -> u64 {
        super::forced_yields().saturating_sub(self.extras().yields_before)
    }

    /// Counts the waits for events that found none.
    pub fn worker_noop_count(&self, worker: usize) -> u64 {
        self.check(worker);
        self.share(self.handle.shared.metrics().empty_waits)
    }

    pub fn worker_steal_count(&self, worker: usize) -> u64 {
        self.check(worker);
        self.handle.shared.figures(worker).stolen
    }

    /// Returns the same as [`worker_steal_count`](Self::worker_steal_count): a theft counts once, even if it
    /// moves several tasks.
    pub fn worker_steal_operations(&self, worker: usize) -> u64 {
        self.worker_steal_count(worker)
    }

    /// Where the times of polls are measured, returns the polls that have ended, all of which the histogram
    /// has: a program may read the histogram only if this count has risen, as tokio-metrics does.
    pub fn worker_poll_count(&self, worker: usize) -> u64 {
        self.check(worker);
        match &self.extras().poll_times {
            Some(histogram) => histogram.total(worker),
            None => self.handle.shared.figures(worker).polls,
        }
    }

    /// Returns the polls that no schedule by another thread explains: see
    /// [`remote_schedule_count`](Self::remote_schedule_count). This is an estimate, of which the highest so
    /// far is returned: a count never falls.
    pub fn worker_local_schedule_count(&self, worker: usize) -> u64 {
        let polls = self.worker_poll_count(worker);
        let all: u64 = (0..self.num_workers()).map(|worker| self.worker_poll_count(worker)).sum();
        let remote = self.remote_schedule_count().min(all);
        let explained = u128::from(remote) * u128::from(polls) / u128::from(all.max(1));
        highest(&self.extras().local_schedules[worker], polls - explained as u64)
    }

    /// Always zero: paceline does not count it.
    pub fn worker_overflow_count(&self, worker: usize) -> u64 {
        self.check(worker);
        0
    }

    /// Returns the mean over the life of the worker: its processor time for each poll. Zero in a
    /// current-thread runtime, as in the real tokio.
    pub fn worker_mean_poll_time(&self, worker: usize) -> Duration {
        self.check(worker);
        let figures = self.handle.shared.figures(worker);
        if self.handle.shared.config.flavor == RuntimeFlavor::CurrentThread || figures.polls == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos((figures.busy.as_nanos() / u128::from(figures.polls)) as u64)
    }
}

/// Histograms.
impl RuntimeMetrics {
    pub fn poll_time_histogram_enabled(&self) -> bool {
        self.extras().poll_times.is_some()
    }

    #[deprecated(note = "Renamed to `poll_time_histogram_enabled`")]
    #[doc(hidden)]
    pub fn poll_count_histogram_enabled(&self) -> bool {
        self.poll_time_histogram_enabled()
    }

    pub fn poll_time_histogram_num_buckets(&self) -> usize {
        num_buckets(self.extras().poll_times.as_ref())
    }

    #[deprecated(note = "renamed to `poll_time_histogram_num_buckets`.")]
    #[doc(hidden)]
    pub fn poll_count_histogram_num_buckets(&self) -> usize {
        self.poll_time_histogram_num_buckets()
    }

    #[track_caller]
    pub fn poll_time_histogram_bucket_range(&self, bucket: usize) -> Range<Duration> {
        bucket_range(self.extras().poll_times.as_ref(), bucket)
    }

    #[deprecated(note = "renamed to `poll_time_histogram_bucket_range`")]
    #[doc(hidden)]
    #[track_caller]
    pub fn poll_count_histogram_bucket_range(&self, bucket: usize) -> Range<Duration> {
        self.poll_time_histogram_bucket_range(bucket)
    }

    #[track_caller]
    pub fn poll_time_histogram_bucket_count(&self, worker: usize, bucket: usize) -> u64 {
        self.check(worker);
        bucket_count(self.extras().poll_times.as_ref(), worker, bucket)
    }

    #[deprecated(note = "use `poll_time_histogram_bucket_count` instead")]
    #[doc(hidden)]
    #[track_caller]
    pub fn poll_count_histogram_bucket_count(&self, worker: usize, bucket: usize) -> u64 {
        self.poll_time_histogram_bucket_count(worker, bucket)
    }
}

/// The histogram of the times between wake and poll.
#[cfg(feature = "schedule-latency")]
impl RuntimeMetrics {
    pub fn schedule_latency_histogram_enabled(&self) -> bool {
        self.extras().latencies.is_some()
    }

    pub fn schedule_latency_histogram_num_buckets(&self) -> usize {
        num_buckets(self.extras().latencies.as_ref())
    }

    #[track_caller]
    pub fn schedule_latency_histogram_bucket_range(&self, bucket: usize) -> Range<Duration> {
        bucket_range(self.extras().latencies.as_ref(), bucket)
    }

    #[track_caller]
    pub fn schedule_latency_histogram_bucket_count(&self, worker: usize, bucket: usize) -> u64 {
        self.check(worker);
        bucket_count(self.extras().latencies.as_ref(), worker, bucket)
    }
}

#[cfg(feature = "net")]
impl RuntimeMetrics {
    pub fn io_driver_fd_registered_count(&self) -> u64 {
        self.extras().registered.load(Ordering::Relaxed)
    }

    pub fn io_driver_fd_deregistered_count(&self) -> u64 {
        let registered_now = self.handle.shared.metrics().sources as u64;
        self.io_driver_fd_registered_count().saturating_sub(registered_now)
    }

    pub fn io_driver_ready_count(&self) -> u64 {
        self.handle.shared.metrics().events
    }
}

impl RuntimeMetrics {
    fn extras(&self) -> &Extras {
        &self.handle.shared.extras
    }
}

/// Notes an estimate, and returns the highest one so far.
fn highest(so_far: &AtomicU64, estimate: u64) -> u64 {
    // ORDER: Relaxed, because a count orders nothing.
    so_far.fetch_max(estimate, Ordering::Relaxed).max(estimate)
}

fn num_buckets(histogram: Option<&Histogram>) -> usize {
    histogram.map_or(0, |histogram| histogram.buckets().len())
}

#[track_caller]
fn bucket_range(histogram: Option<&Histogram>, bucket: usize) -> Range<Duration> {
    histogram.map_or(Duration::ZERO..Duration::ZERO, |histogram| histogram.buckets()[bucket].clone())
}

#[track_caller]
fn bucket_count(histogram: Option<&Histogram>, worker: usize, bucket: usize) -> u64 {
    histogram.map_or(0, |histogram| histogram.counted(worker, bucket))
}
