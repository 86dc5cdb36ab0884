//! [`Runtime`] and its parts: a paceline runtime, and the guarantees of tokio that paceline does not give.
//!
//! | part | what it is |
//! |---|---|
//! | [`shared`] | the state that all handles of a runtime share |
//! | [`handle`], [`runtime`], [`local`], [`builder`] | the public types |
//! | [`blocking`] | blocking closures, and the waits for them |
//! | [`budget`], [`fence`] | the cooperative budget of a poll, and the ban on blocking, for tokio's types |
//! | [`hooks`] | hooks for threads that start, stop, sleep or wake |
//! | [`simulated`] | the runtime of a simulation, behind a feature |
//! | [`workers`] | what each worker has done |
//! | [`extras`] | what tokio has behind `tokio_unstable` |
//! | [`errors`], [`metrics`] | as their names say |

mod blocking;
mod budget;
mod builder;
#[cfg(all(test, target_os = "linux", feature = "rt-multi-thread"))]
mod diagnostics;
mod errors;
#[cfg_attr(not(tokio_unstable), path = "stable.rs")]
#[cfg_attr(tokio_unstable, path = "unstable/mod.rs")]
mod extras;
mod fence;
mod handle;
mod hooks;
mod local;
mod metrics;
#[expect(clippy::module_inception, reason = "named after its type, as the others are")]
mod runtime;
mod shared;
#[cfg_attr(feature = "sim", path = "simulated_on.rs")]
#[cfg_attr(not(feature = "sim"), path = "simulated_off.rs")]
mod simulated;
mod workers;

pub use builder::Builder;
pub use errors::TryCurrentError;
#[cfg(feature = "rt")]
pub use errors::is_rt_shutdown_err;
pub use handle::{EnterGuard, Handle, Id};
pub use local::{LocalOptions, LocalRuntime};
pub use metrics::RuntimeMetrics;
pub use runtime::{Runtime, RuntimeFlavor};

#[cfg(tokio_unstable)]
pub use extras::TaskMeta;
#[cfg(tokio_unstable)]
#[doc(no_inline)]
pub use real::runtime::{
    HistogramConfiguration, HistogramScale, InvalidHistogramConfiguration, LogHistogram, LogHistogramBuilder,
    RngSeed, UnhandledPanic,
};

pub(crate) use budget::{refill, with_budget};
#[allow(unused_imports, reason = "for what waits for a runtime that ends, if that is compiled in")]
pub(crate) use errors::SHUTTING_DOWN;
pub(crate) use extras::{LocalExtras, launch_local};
#[cfg(feature = "rt-multi-thread")]
pub(crate) use fence::outside;
pub(crate) use local::current_local;
pub(crate) use shared::Shared;
pub(crate) use simulated::of_simulation;

/// Called at the beginning of each poll of a task or of `block_on`'s future. Not for the tasks of a
/// `LocalSet`: these are polled within the set's poll, and only get a full budget.
#[inline]
pub(crate) fn begin_poll() {
    refill();
    #[cfg(all(unix, feature = "signal"))]
    crate::signal::registry::begin_poll();
}

/// Returns the number of the worker, if this thread is one.
pub fn worker_index() -> Option<usize> {
    crate::context::worker()
}
