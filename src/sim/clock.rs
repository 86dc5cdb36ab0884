//! A clock that tests can stop. Requires the feature `test-clock`.
//!
//! The timers of a runtime of the [current thread](crate::Builder::current_thread) follow a clock of the
//! runtime. While that clock is paused, a test that waits for an hour takes no time: when the runtime's
//! thread has nothing to do, neither a task nor an event nor a closure that [blocks](crate::blocking), the
//! clock advances to the next timer by itself. Each run does the same things at the same times of that clock.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use paceline::{Runtime, Timer, clock, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! let began = Instant::now();
//! let runtime = Runtime::builder().current_thread().start_paused(true).build()?;
//! runtime.block_on(async {
//!     let start = clock::now();
//!     let other = spawn(async { Timer::after(Duration::from_secs(1800)).await });
//!     Timer::after(Duration::from_secs(3600)).await;
//!     assert_eq!(clock::now() - start, Duration::from_secs(3600));
//!     assert_eq!(other.await - start, Duration::from_secs(1800));
//! });
//! assert!(began.elapsed() < Duration::from_secs(60));
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `macros`, such a test is marked `#[paceline::test(start_paused)]`. If the clock of a
//! runtime runs, [`pause`] stops it.
//!
//! [`Timer`](crate::Timer), [`timeout`](crate::timeout()) and the deadlines of [jobs](crate::blocking::Job)
//! follow this clock. A closure that runs or waits for a thread keeps the clock from advancing, so a job's
//! deadline does not come before its end. The streams of [`Unblock`](crate::Unblock) do not, because they may
//! read for ever. The deputy, which watches the runtime, does not follow this clock, nor do the deadlines of
//! [`drain`](crate::Handle::drain) and [`shutdown`](crate::Runtime::shutdown). The clock is meant for one
//! thread: if several are in a `block_on` of the runtime, a thread that has nothing to do does not wait for
//! the others.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::current::current_pool;
use crate::pool::{self, Pool};
use crate::runtime::Builder;
use crate::simulated;

impl Builder {
    /// Starts the runtime with its [clock](crate::clock) paused, so that timers take no time. Requires the
    /// feature `test-clock`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Runtime, Timer, clock};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = Runtime::builder().current_thread().start_paused(true).build()?;
    /// runtime.block_on(async {
    ///     let start = clock::now();
    ///     Timer::after(Duration::from_secs(3600)).await;
    ///     assert_eq!(clock::now() - start, Duration::from_secs(3600));
    /// });
    ///
    /// let error = Runtime::builder().threads(1).start_paused(true).build().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`build`](Builder::build) returns [`InvalidInput`](io::ErrorKind::InvalidInput) if the runtime is not
    /// one of the [current thread](Builder::current_thread).
    pub fn start_paused(mut self, start_paused: bool) -> Self {
        self.prepare = start_paused.then_some(stop_clock);
        self
    }
}

/// Stops the clock of a pool that is being built. Returns `InvalidInput`, and stops nothing, unless the pool
/// is one of the current thread.
fn stop_clock(pool: &Pool) -> io::Result<()> {
    if !pool.crew().is_some_and(|crew| crew.is_unmanned()) {
        let what = "`start_paused` is for a runtime of the current thread: see `Builder::current_thread`";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    pool.reactor.stop_clock();
    Ok(())
}

/// Returns the time of the current runtime's clock: that of the system, unless the clock was paused.
///
/// ```
/// use std::time::Instant;
/// assert!(paceline::clock::now() >= Instant::now() - std::time::Duration::from_secs(1));
/// ```
pub fn now() -> Instant {
    pool::now()
}

/// Pauses the clock of the current runtime until [`resume`]. [`Builder::start_paused`] and
/// `#[paceline::test(start_paused)]` pause it before anything runs.
///
/// # Panics
///
/// If the clock is paused already, or if the runtime is not one of the [current
/// thread](crate::Builder::current_thread).
#[track_caller]
pub fn pause() {
    assert!(of_this_thread("pause").reactor.stop_clock(), "`clock::pause`: the clock is paused already");
}

/// Lets the clock run again from its current time, at the speed of the system's clock.
///
/// ```
/// use std::time::Duration;
/// use paceline::{Runtime, Timer, clock};
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Runtime::builder().current_thread().build()?;
/// runtime.block_on(async {
///     clock::pause();
///     Timer::after(Duration::from_secs(3600)).await;
///     clock::resume();
///     Timer::after(Duration::from_millis(1)).await;
/// });
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// If the clock is not paused, if the runtime is not one of the [current
/// thread](crate::Builder::current_thread), or in a simulation.
#[track_caller]
pub fn resume() {
    let pool = of_this_thread("resume");
    assert!(!simulated::is_running(), "`clock::resume`: the clock of a simulation does not run");
    assert!(pool.reactor.clock.go_on(), "`clock::resume`: the clock is not paused");
    pool.reactor.interrupt();
}

/// Advances the clock when the returned future is polled first, and lets the tasks run that wait for timers
/// due by then. How far those tasks get is not specified; await their results.
///
/// ```
/// use std::time::Duration;
/// use paceline::{Runtime, Timer, clock, spawn};
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Runtime::builder().current_thread().build()?;
/// runtime.block_on(async {
///     clock::pause();
///     let start = clock::now();
///     let timer = spawn(Timer::after(Duration::from_secs(5)));
///     clock::advance(Duration::from_secs(7)).await;
///     assert_eq!(clock::now() - start, Duration::from_secs(7));
///     timer.await;
/// });
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// The call does not panic. The first poll of the future does if the clock is not paused or cannot advance
/// that far, or if the runtime is not one of the [current thread](crate::Builder::current_thread).
#[track_caller]
pub fn advance(by: Duration) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        // These panics happen in a poll, and no line of the program calls `poll`: the message names the line.
        let pool = current_thread_pool()
            .unwrap_or_else(|| panic!("{}, at {caller}", wrong_runtime_message("advance")));
        assert!(pool.reactor.clock.advance(by), "`clock::advance`: the clock is not paused, at {caller}");
        pool.reactor.interrupt();
        drop(pool);
        let mut looked = false;
        poll_fn(|cx| {
            if looked {
                return Poll::Ready(());
            }
            looked = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Returns the current runtime's pool. Panics, with the name of the function `what`, if that is not one of
/// the current thread.
#[track_caller]
fn of_this_thread(what: &str) -> Arc<Pool> {
    // Not in a closure: the panic would name the line of the closure.
    match current_thread_pool() {
        Some(pool) => pool,
        None => panic!("{}", wrong_runtime_message(what)),
    }
}

/// Returns the current runtime's pool, if it is one of the current thread.
fn current_thread_pool() -> Option<Arc<Pool>> {
    current_pool().ok().filter(|pool| pool.crew().is_some_and(|crew| crew.is_unmanned()))
}

/// Returns the text of a panic of `clock::{what}`: the caller is in no runtime of the current thread.
fn wrong_runtime_message(what: &str) -> String {
    format!(
        "`clock::{what}` is for runtimes of the current thread: use `#[paceline::test(start_paused)]` or \
         `Builder::current_thread`"
    )
}
