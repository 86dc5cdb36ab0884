//! A clock that tests can stop: feature `test-clock`.
//!
//! Timers of a runtime of the [current thread](crate::Builder::current_thread) go by a clock of its own. While that stands still, a test that
//! waits for an hour takes no time: when the runtime's thread has nothing else to do, neither a task nor an event nor a
//! closure that [blocks](crate::blocking), the clock goes on to the next timer by itself. And what happens at which moment is always the same.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use paceline::{Runtime, Timer, clock, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! let began = Instant::now();
//! let runtime = Runtime::builder().current_thread().build()?;
//! runtime.block_on(async {
//!     clock::pause();
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
//! [`Timer`](crate::Timer), [`timeout`](crate::timeout()) and the deadlines of [jobs](crate::blocking::Job) go by it. A closure that runs or waits for
//! a thread keeps the clock where it is, so a job's deadline does not come before its end; the streams of
//! [`Unblock`](crate::Unblock) do not, as they may read for ever. What watches over the runtime itself does not go by it, nor do the deadlines of
//! [`drain`](crate::Runtime::drain) and [`shutdown`](crate::Runtime::shutdown). It is for one thread: where several are in a `block_on` of the runtime,
//! one that has nothing to do does not wait for the others.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::pool::{self, Pool};

/// What the clock of the current runtime says: the system's, unless it was stopped.
///
/// ```
/// use std::time::Instant;
/// assert!(paceline::clock::now() >= Instant::now() - std::time::Duration::from_secs(1));
/// ```
pub fn now() -> Instant {
    pool::now()
}

/// Stops the clock of the current runtime, until [`resume`].
///
/// # Panics
///
/// If it stands already, or the runtime is none of the [current thread](crate::Builder::current_thread).
#[track_caller]
pub fn pause() {
    assert!(of_this_thread("pause").reactor.stop_clock(), "`clock::pause`: the clock stands already");
}

/// The clock goes on from where it stands, as the system's does.
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
/// If it does not stand.
#[track_caller]
pub fn resume() {
    let pool = of_this_thread("resume");
    assert!(pool.reactor.clock.go_on(), "`clock::resume`: the clock does not stand");
    pool.reactor.interrupt();
}

/// Moves the clock on, and lets the tasks run whose timers are due then. How far they get is not said; await what they do.
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
/// If it does not stand; or if the clock cannot go that far.
pub async fn advance(by: Duration) {
    let pool = of_this_thread("advance");
    assert!(pool.reactor.clock.advance(by), "`clock::advance`: the clock does not stand");
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

#[track_caller]
fn of_this_thread(what: &str) -> Arc<Pool> {
    let pool = Pool::current().ok().filter(|pool| pool.crew().is_some_and(|crew| crew.is_unmanned()));
    pool.unwrap_or_else(|| {
        panic!("`clock::{what}` is for runtimes of the current thread: see `Builder::current_thread`")
    })
}
