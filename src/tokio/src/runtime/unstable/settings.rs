//! The methods of [`Builder`] behind `tokio_unstable`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use real::runtime::Builder as RealBuilder;
use real::runtime::{HistogramConfiguration, HistogramScale, RngSeed, UnhandledPanic};

use super::histogram::Histogram;
use super::meta::{TaskHooks, TaskMeta};
use super::panics::Panics;
use super::{Extras, forced_yields};
use crate::runtime::{Builder, RuntimeFlavor};

/// The settings of a builder. The real tokio checks those that are of its types.
pub(crate) struct Settings {
    hooks: TaskHooks,
    measures_polls: bool,
    poll_times: RealBuilder,
    tracks_latency: bool,
    measures_latency: bool,
    latencies: RealBuilder,
    seeds: Option<RealBuilder>,
    ends_at_panic: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hooks: TaskHooks::default(),
            measures_polls: false,
            poll_times: RealBuilder::new_current_thread(),
            tracks_latency: false,
            measures_latency: false,
            latencies: RealBuilder::new_current_thread(),
            seeds: None,
            ends_at_panic: false,
        }
    }
}

impl Settings {
    pub(in crate::runtime) fn start(&mut self, workers: usize) -> io::Result<Extras> {
        let histogram = |is_on: bool, builder| is_on.then(|| Histogram::new(builder, workers)).transpose();
        Ok(Extras {
            hooks: self.hooks.clone(),
            poll_times: histogram(self.measures_polls, &mut self.poll_times)?,
            latencies: histogram(self.measures_latency, &mut self.latencies)?,
            tracks_latency: self.tracks_latency || self.measures_latency,
            seeds: self.seeds.as_mut().map(RealBuilder::build).transpose()?,
            panics: Panics::new(self.ends_at_panic),
            spawned_elsewhere: AtomicU64::new(0),
            remote_schedules: AtomicU64::new(0),
            local_schedules: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            registered: AtomicU64::new(0),
            yields_before: forced_yields(),
        })
    }
}

/// Hooks for tasks. A panic in a hook is caught.
impl Builder {
    /// Calls `f` for each task that is spawned, on the thread that spawns it.
    pub fn on_task_spawn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.extras.hooks.on_spawn = Some(Arc::new(f));
        self
    }

    pub fn on_before_task_poll<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.extras.hooks.before_poll = Some(Arc::new(f));
        self
    }

    pub fn on_after_task_poll<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.extras.hooks.after_poll = Some(Arc::new(f));
        self
    }

    /// Calls `f` for each task whose future has been dropped, before its join handle is ready.
    pub fn on_task_terminate<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.extras.hooks.on_terminate = Some(Arc::new(f));
        self
    }
}

impl Builder {
    #[track_caller]
    pub fn unhandled_panic(&mut self, behavior: UnhandledPanic) -> &mut Self {
        let ends = matches!(behavior, UnhandledPanic::ShutdownRuntime);
        assert!(
            !ends || self.flavor == RuntimeFlavor::CurrentThread,
            "UnhandledPanic::ShutdownRuntime is only supported in current thread runtime"
        );
        self.extras.ends_at_panic = ends;
        self
    }

    /// Seeds `select!`, and other random choices of the real tokio's parts, for each `block_on`, and in a
    /// multi-thread runtime for each poll of a task.
    pub fn rng_seed(&mut self, seed: RngSeed) -> &mut Self {
        let mut seeds = RealBuilder::new_current_thread();
        seeds.rng_seed(seed);
        self.extras.seeds = Some(seeds);
        self
    }

    /// Without effect: other threads take the task out of the slot of a thread that blocks.
    pub fn disable_lifo_slot(&mut self) -> &mut Self {
        self
    }

    /// Without effect: timers are paceline's.
    #[cfg(all(feature = "time", feature = "rt-multi-thread"))]
    pub fn enable_alt_timer(&mut self) -> &mut Self {
        self.enable_time()
    }

    /// Without effect: another thread leads if the leader blocks.
    #[cfg(feature = "rt-multi-thread")]
    pub fn enable_eager_driver_handoff(&mut self) -> &mut Self {
        self
    }

    /// Without effect: the queue is paceline's.
    pub fn enable_sharded_blocking_queue(&mut self) -> &mut Self {
        self
    }

    /// Without effect: blocking threads read and write files, as tokio's do if the system has no io-uring.
    #[cfg(all(feature = "io-uring", feature = "fs", target_os = "linux"))]
    pub fn enable_io_uring(&mut self) -> &mut Self {
        self
    }
}

/// The histogram of the times of polls, and that of the times between wake and poll.
impl Builder {
    pub fn enable_metrics_poll_time_histogram(&mut self) -> &mut Self {
        self.extras.measures_polls = true;
        self
    }

    #[deprecated(note = "renamed to `enable_metrics_poll_time_histogram`")]
    #[doc(hidden)]
    pub fn enable_metrics_poll_count_histogram(&mut self) -> &mut Self {
        self.enable_metrics_poll_time_histogram()
    }

    pub fn metrics_poll_time_histogram_configuration(
        &mut self,
        configuration: HistogramConfiguration,
    ) -> &mut Self {
        self.extras.poll_times.metrics_poll_time_histogram_configuration(configuration);
        self
    }

    #[deprecated(note = "use `metrics_poll_time_histogram_configuration`")]
    #[doc(hidden)]
    #[allow(deprecated, reason = "the setting of the real tokio is deprecated, too")]
    pub fn metrics_poll_count_histogram_scale(&mut self, scale: HistogramScale) -> &mut Self {
        self.extras.poll_times.metrics_poll_count_histogram_scale(scale);
        self
    }

    #[deprecated(note = "use `metrics_poll_time_histogram_configuration`")]
    #[doc(hidden)]
    #[allow(deprecated, reason = "as above")]
    pub fn metrics_poll_count_histogram_resolution(&mut self, resolution: Duration) -> &mut Self {
        self.extras.poll_times.metrics_poll_count_histogram_resolution(resolution);
        self
    }

    #[deprecated(note = "use `metrics_poll_time_histogram_configuration`")]
    #[doc(hidden)]
    #[allow(deprecated, reason = "as above")]
    pub fn metrics_poll_count_histogram_buckets(&mut self, buckets: usize) -> &mut Self {
        self.extras.poll_times.metrics_poll_count_histogram_buckets(buckets);
        self
    }

    #[cfg(feature = "schedule-latency")]
    pub fn track_task_schedule_latency(&mut self) -> &mut Self {
        self.extras.tracks_latency = true;
        self
    }

    #[cfg(feature = "schedule-latency")]
    pub fn enable_metrics_schedule_latency_histogram(&mut self) -> &mut Self {
        self.extras.measures_latency = true;
        self
    }

    #[cfg(feature = "schedule-latency")]
    pub fn metrics_schedule_latency_histogram_configuration(
        &mut self,
        configuration: HistogramConfiguration,
    ) -> &mut Self {
        self.extras.latencies.metrics_poll_time_histogram_configuration(configuration);
        self
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}
