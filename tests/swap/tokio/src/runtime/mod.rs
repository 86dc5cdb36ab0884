//! [`Runtime`] and what belongs to it: a paceline runtime, and beside it what tokio promises and paceline does not.
//!
//! | part | what it is |
//! |---|---|
//! | [`shared`] | what all handles of a runtime share |
//! | [`handle`], [`runtime`], [`local`], [`builder`] | the public types |
//! | [`blocking`] | closures that block: which are run, which are cancelled, and who waits for them |
//! | [`budget`], [`fence`] | the share of cooperation that each poll begins with, and that it must not block: as the real one's types want to know |
//! | [`hooks`] | what is called when a thread starts, stops, sleeps, wakes |
//! | [`errors`], [`metrics`] | as they are called |

mod blocking;
mod budget;
mod builder;
mod errors;
mod fence;
mod handle;
mod hooks;
mod local;
mod metrics;
#[expect(clippy::module_inception, reason = "named after its type, as the others are")]
mod runtime;
mod shared;

pub use builder::Builder;
pub use errors::TryCurrentError;
#[cfg(feature = "rt")]
pub use errors::is_rt_shutdown_err;
pub use handle::{EnterGuard, Handle, Id};
pub use local::{LocalOptions, LocalRuntime};
pub use metrics::RuntimeMetrics;
pub use runtime::{Runtime, RuntimeFlavor};

pub(crate) use budget::{refill, with_budget};
#[allow(unused_imports, reason = "for what waits for a runtime that ends, if that is compiled in")]
pub(crate) use errors::SHUTTING_DOWN;
#[cfg(feature = "rt-multi-thread")]
pub(crate) use fence::outside;
pub(crate) use local::current_local;
pub(crate) use shared::Shared;

/// Which worker of its runtime this thread is, if it is one.
pub fn worker_index() -> Option<usize> {
    crate::context::worker()
}
