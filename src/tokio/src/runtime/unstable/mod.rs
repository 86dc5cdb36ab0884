//! The part of tokio behind `tokio_unstable`. If its builder asks for none of this, a runtime pays some tests
//! of fields for each spawn, and one for each poll of a task.
//!
//! | part | what it is |
//! |---|---|
//! | [`settings`] | the builder's methods |
//! | [`meta`] | the hooks for tasks, and what they are told |
//! | [`watch`] | calls the hooks, and measures polls |
//! | [`latency`] | measures how long a task waits between its wake and its poll |
//! | [`histogram`] | durations, counted by worker and bucket |
//! | [`metrics`] | the numbers of [`RuntimeMetrics`](super::RuntimeMetrics) |
//! | [`panics`] | ends a runtime or a set when a task panics |

mod histogram;
mod latency;
mod meta;
mod metrics;
mod panics;
mod settings;
#[cfg(all(test, feature = "full"))]
mod tests;
mod watch;

pub use meta::TaskMeta;

pub(crate) use panics::LocalExtras;
pub(crate) use settings::Settings;

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Handle, RuntimeFlavor, Shared, fence};
use crate::context;
use crate::task::{AtHome, JoinHandle, Local, SpawnMeta};
use histogram::Histogram;
use meta::TaskHooks;
use panics::Panics;
use watch::{Watch, Watched};

/// The part of a runtime.
#[derive(Debug)]
pub(crate) struct Extras {
    hooks: TaskHooks,
    poll_times: Option<Histogram>,
    latencies: Option<Histogram>,
    /// Whether the time between wake and poll is measured.
    tracks_latency: bool,
    /// A runtime of the real tokio, which hands out the seeds for `select!`.
    seeds: Option<real::runtime::Runtime>,
    panics: Panics,
    /// Tasks that were spawned by threads other than the worker, in a runtime with one.
    spawned_elsewhere: AtomicU64,
    /// The highest estimate of remote schedules that was reported.
    remote_schedules: AtomicU64,
    /// For each worker, the highest estimate of local schedules that was reported.
    local_schedules: Box<[AtomicU64]>,
    /// Descriptors that were registered.
    registered: AtomicU64,
    /// The forced yields in the process before the runtime was built.
    yields_before: u64,
}

impl Extras {
    /// Returns whether the tasks of the runtime are watched.
    fn is_watching(&self, flavor: RuntimeFlavor) -> bool {
        // In a current-thread runtime, `block_on` takes the seed for all polls in it.
        let seeds_polls = self.seeds.is_some() && flavor == RuntimeFlavor::MultiThread;
        !self.hooks.is_empty() || self.poll_times.is_some() || self.tracks_latency || seeds_polls
    }

    pub(crate) fn note_panic(&self) {
        self.panics.note();
    }

    /// Returns whether a panic of a task has ended the runtime.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.panics.has_ended()
    }

    /// Calls `f` as if in a poll of the real tokio, with the next seed if the runtime has seeds.
    pub(super) fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        match &self.seeds {
            Some(seeds) => fence::inside_of(seeds, || fence::entered(f)),
            None => fence::inside(f),
        }
    }

    /// Makes the future of a `block_on` call `end` and panic if the runtime ends because a task panicked.
    pub(super) fn guard<F: Future>(
        handle: &Handle,
        future: F,
        end: impl FnOnce(),
    ) -> impl Future<Output = F::Output> {
        panics::guard(handle, future, end)
    }

    #[cfg(any(feature = "net", all(unix, feature = "process")))]
    pub(crate) fn note_registration(&self) {
        self.registered.fetch_add(1, Ordering::Relaxed);
    }

    fn note_spawn(&self, runtime: &Shared) {
        let flavor = runtime.config.flavor;
        if flavor == RuntimeFlavor::CurrentThread && context::worker_of(runtime).is_none() {
            self.spawned_elsewhere.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Extras {
    fn drop(&mut self) {
        // The drop of such a runtime panics in a poll, which this may be.
        if let Some(seeds) = self.seeds.take() {
            seeds.shutdown_background();
        }
    }
}

#[track_caller]
pub(super) fn launch<F>(handle: &Handle, future: F, meta: SpawnMeta<'_>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (shared, spawned_at) = (&handle.shared, Location::caller());
    shared.extras.note_spawn(shared);
    if shared.extras.has_ended() {
        return handle.cancel(future);
    }
    let Some(watch) = Watch::of(shared, spawned_at) else {
        return handle.launch_in(future, meta, shared.clone());
    };
    // Boxed, so that the code of a watched task is compiled once for each type of output.
    let future: Pin<Box<dyn Future<Output = F::Output> + Send>> = match watch.stamp() {
        Some(stamp) => Box::pin(latency::Stamped::new(future, stamp)),
        None => Box::pin(future),
    };
    handle.launch_in(future, meta, Watched::new(shared.clone(), watch))
}

#[track_caller]
pub(crate) fn launch_local<F>(local: &Rc<Local>, future: F, meta: SpawnMeta<'_>) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let spawned_at = Location::caller();
    let watch = local.extras.runtime().and_then(|shared| Watch::of(&shared, spawned_at));
    let Some(watch) = watch else {
        return local.launch_in(future, meta, |home: AtHome| home);
    };
    let future: Pin<Box<dyn Future<Output = F::Output>>> = match watch.stamp() {
        Some(stamp) => Box::pin(latency::Stamped::new(future, stamp)),
        None => Box::pin(future),
    };
    local.launch_in(future, meta, |home: AtHome| Watched::new(home, watch))
}

/// Returns the number of times that a task of the process had to yield because its budget was used up.
fn forced_yields() -> u64 {
    fence::metrics().map_or(0, |metrics| metrics.budget_forced_yield_count())
}
