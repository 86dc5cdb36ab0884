//! The seam of `on.rs` without the feature `sim`: there are no simulations.

#[cfg_attr(not(feature = "test-clock"), path = "no_clock.rs")]
pub(crate) mod clock;
pub mod sockets;

/// Files, which are always real.
pub use std::fs;

/// For the package that replaces tokio: `std::fs`, and what that lacks.
pub mod for_tokio {
    pub use std::fs::*;
    #[cfg(unix)]
    pub use std::os::unix::fs::symlink;
    #[cfg(windows)]
    pub use std::os::windows::fs::{symlink_dir, symlink_file};

    /// Returns the file.
    #[allow(clippy::missing_errors_doc, reason = "there is no error")]
    pub const fn into_real(file: File) -> Result<File, File> {
        Ok(file)
    }
}

pub(crate) use clock::{Clock, ClockHold, Clocked};
pub(crate) use sockets::*;

use async_task::Runnable;
use concurrent_queue::ConcurrentQueue;

/// The queue that all runners of an executor take from.
pub(crate) type Injector = ConcurrentQueue<Runnable>;

/// Creates an empty queue.
pub(crate) fn injector(_is_simulated: bool) -> Injector {
    ConcurrentQueue::unbounded()
}

/// Returns false: no simulation runs on this thread.
#[inline]
pub(crate) const fn is_running() -> bool {
    false
}

/// The clocks are always the system's.
#[derive(Debug)]
pub(crate) struct SystemClocks;

#[inline]
pub(crate) const fn system_clocks() -> SystemClocks {
    SystemClocks
}

/// Is not called.
pub(crate) fn would_sleep(_: impl Fn() -> bool) {}

/// Returns `None`: no simulation runs on this thread.
#[inline]
pub(crate) fn with_sockets<R>(_: impl FnOnce(&dyn SocketCalls) -> R) -> Option<R> {
    None
}

/// Returns `None`: no descriptor stands for a socket of a simulation.
#[inline]
pub(crate) fn on_socket<R>(
    _: &impl MaybeSimulated,
    _: impl FnOnce(&dyn SocketCalls, SocketNumber) -> R,
) -> Option<R> {
    None
}

/// Returns the piece of work that blocks, because no simulation takes it.
#[inline]
pub(crate) fn take<P>(piece: P) -> Option<P> {
    Some(piece)
}

/// Returns false: without the feature `sim` nothing injects faults. With it, the macro is true now and then
/// in a simulation.
///
/// ```
/// assert!(!paceline::buggify!(1.0));
/// ```
#[macro_export]
macro_rules! buggify {
    ($probability:expr) => {{
        let _: f64 = $probability;
        false
    }};
}

#[cfg(feature = "trace")]
pub(crate) use notes::*;

#[cfg(feature = "trace")]
mod notes {
    use std::panic::Location;
    use std::time::Duration;

    pub(crate) const fn elapsed() -> Option<Duration> {
        None
    }

    #[inline]
    pub(crate) fn spawns(_: u64, _: &'static Location<'static>) {}

    #[inline]
    pub(crate) fn wakes(_: u64) {}

    #[inline]
    pub(crate) fn begins_poll(_: u64) {}

    #[inline]
    pub(crate) fn ends_poll() {}

    #[inline]
    pub(crate) fn ends(_: u64) {}
}
