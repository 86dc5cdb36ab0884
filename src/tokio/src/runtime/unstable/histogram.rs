//! [`Histogram`]: durations, counted by worker and bucket. The real tokio computes the buckets from the
//! settings, which are of its types.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use real::runtime::Builder;

/// How often a duration fell into each bucket, for each worker.
#[derive(Debug)]
pub(super) struct Histogram {
    /// The buckets, in ascending order and without gaps.
    buckets: Vec<Range<Duration>>,
    /// For each worker, a count for each bucket.
    counts: Vec<Box<[AtomicU64]>>,
}

impl Histogram {
    /// Makes a histogram with the buckets that `builder` has for the times of polls.
    pub(super) fn new(builder: &mut Builder, workers: usize) -> io::Result<Self> {
        let runtime = builder.enable_metrics_poll_time_histogram().build()?;
        let metrics = runtime.metrics();
        let buckets = 0..metrics.poll_time_histogram_num_buckets();
        let buckets: Vec<_> =
            buckets.map(|bucket| metrics.poll_time_histogram_bucket_range(bucket)).collect();
        // Its drop panics in a poll.
        runtime.shutdown_background();
        let counts = || buckets.iter().map(|_| AtomicU64::new(0)).collect();
        let counts = (0..workers).map(|_| counts()).collect();
        Ok(Self { buckets, counts })
    }

    pub(super) fn count(&self, worker: usize, duration: Duration) {
        let at = self.buckets.partition_point(|bucket| bucket.end <= duration);
        let Some(last) = self.buckets.len().checked_sub(1) else { return };
        // ORDER: Relaxed, because a count orders nothing.
        self.counts[worker][at.min(last)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn buckets(&self) -> &[Range<Duration>] {
        &self.buckets
    }

    /// Returns the counts of all buckets together.
    pub(super) fn total(&self, worker: usize) -> u64 {
        self.counts[worker].iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn counted(&self, worker: usize, bucket: usize) -> u64 {
        self.counts[worker][bucket].load(Ordering::Relaxed)
    }
}
