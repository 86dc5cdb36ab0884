//! The runtime that a call acts on: that of the current thread, else the default instance.
//!
//! This module makes the default instance: a pool needs the code that its deputy's thread runs
//! ([`watch::serve`]), which `pool` may not name.

use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;

use crate::pool::block_on::PoolSource;
use crate::pool::serve::block_on_in;
use crate::pool::{self, Pool, Tuning};
use crate::reactor::Reactor;
use crate::watch;

/// Runs a future on the current thread until it is done.
///
/// While the future waits, the thread takes its turn at the reactor: alone, it waits for its own events.
/// Calls may be nested. A thread that calls this again, with a future that is ready at once, allocates
/// nothing and takes no lock.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Timer, block_on};
///
/// block_on(async {
///     Timer::after(Duration::from_millis(1)).await;
/// });
/// ```
///
/// # Panics
///
/// If the future panics. Leadership is passed on first.
#[track_caller]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_in(PoolSource::Current(current_pool), pin!(Some(future)), Location::caller())
}

/// Returns the pool that the current thread is in, or else the default instance.
pub(crate) fn current_pool() -> io::Result<Arc<Pool>> {
    pool::with_current_pool(Arc::clone).map_or_else(default_instance, Ok)
}

/// Returns the default instance. The first call makes it.
pub(crate) fn default_instance() -> io::Result<Arc<Pool>> {
    Pool::default_or_make(|| Pool::new(Tuning::default(), watch::serve))
}

/// Returns the reactor of the runtime that the current thread is in, or else that of the default instance.
/// Returns an error only if the default instance is needed and cannot be made.
#[inline]
pub(crate) fn current_reactor() -> io::Result<Arc<Reactor>> {
    match pool::with_current_pool(|pool| pool.reactor.clone()) {
        Some(reactor) => Ok(reactor),
        None => default_reactor(),
    }
}

/// Returns the reactor of the default instance.
pub(crate) fn default_reactor() -> io::Result<Arc<Reactor>> {
    Ok(default_instance()?.reactor.clone())
}

/// Returns the descriptor that the default instance waits on, and makes that instance if there is none.
/// Returns `None` if it cannot be made, or if its poller has no descriptor.
#[cfg(unix)]
pub(crate) fn default_descriptor() -> Option<std::os::fd::BorrowedFd<'static>> {
    use std::os::fd::{AsRawFd, BorrowedFd};
    let pool = default_instance().ok()?;
    let fd = pool.reactor.descriptor()?.as_raw_fd();
    // SAFETY: `Pool::default_or_make` keeps the pool, and with it the descriptor, until the process ends.
    Some(unsafe { BorrowedFd::borrow_raw(fd) })
}
