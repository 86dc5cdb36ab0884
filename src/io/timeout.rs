//! [`timeout()`]: a limit on how long a future may take.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::Timer;

/// Limits how long `future` may take: returns its output, or [`Elapsed`] after `duration`.
///
/// The time counts from this call. The future is always polled before the clock is read, so a future that is
/// ready wins, even with a `duration` of zero. A `duration` that is too long for the clock sets no limit. A
/// future that is ready at its first poll costs no timer.
///
/// # Examples
///
/// ```
/// use std::future::{pending, ready};
/// use std::time::Duration;
/// use paceline::{block_on, timeout};
///
/// # fn main() -> std::io::Result<()> {
/// block_on(async {
///     let late = timeout(Duration::from_millis(5), pending::<()>()).await.unwrap_err();
///     assert!(late.to_string().starts_with("not done within 5ms, given at "));
///
///     assert_eq!(timeout(Duration::ZERO, ready(7)).await, Ok(7));
///
///     // As an error of I/O, by `?`.
///     timeout(Duration::MAX, async {}).await?;
///     Ok(())
/// })
/// # }
/// ```
///
/// To give a task a deadline, spawn a future with a timeout. When the time is over, the future is cancelled
/// at its current await, and the error names the line that called `timeout`:
///
/// ```
/// # use std::time::Duration;
/// # use paceline::{block_on, spawn, timeout};
/// # async fn serve() { std::future::pending().await }
/// # let (tell, told) = std::sync::mpsc::channel();
/// # let log = move |late: paceline::Elapsed| tell.send(late.to_string()).unwrap();
/// let handler = timeout(Duration::from_millis(5), serve());
/// spawn(async { handler.await.unwrap_or_else(log) }).detach();
/// # assert!(told.recv().unwrap().contains("given at"));
/// ```
///
/// # Panics
///
/// If the future panics, and if no reactor can be made: see [`Timer`].
///
/// # Cancel safety
///
/// Dropping the `Timeout` drops the future. After [`Elapsed`] the future exists until the `Timeout` is
/// dropped, which `.await` does at once. To continue the future after a timeout, pass `&mut` to it.
#[track_caller]
pub fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    let limit = Elapsed { duration, given_at: Location::caller() };
    Timeout { future, timer: Timer::after(duration), limit }
}

pin_project! {
    /// A future with a limit: see [`timeout`].
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is polled"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        timer: Timer,
        limit: Elapsed,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    /// Polls the future, then, if it is not ready, the timer. If that has fired, returns `Err` with the
    /// limit.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(this.timer).poll(cx).map(|_| Err(*this.limit))
    }
}

/// An error: a future was not done in time. See [`timeout`].
///
/// The operator `?` converts it to an [`io::Error`] of kind [`TimedOut`](io::ErrorKind::TimedOut), which has
/// this error as its source.
///
/// # Examples
///
/// ```
/// use std::{future::pending, io, time::Duration};
///
/// let late = paceline::block_on(paceline::timeout(Duration::from_millis(1), pending::<()>())).unwrap_err();
/// assert_eq!(late.duration(), Duration::from_millis(1));
/// assert_eq!(io::Error::from(late).kind(), io::ErrorKind::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Elapsed {
    duration: Duration,
    given_at: &'static Location<'static>,
}

impl Elapsed {
    /// Returns the limit that the future had.
    ///
    /// ```
    /// # use std::{future::pending, time::Duration};
    /// let late = paceline::block_on(paceline::timeout(Duration::ZERO, pending::<()>())).unwrap_err();
    /// assert_eq!(late.duration(), Duration::ZERO);
    /// ```
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns where [`timeout`] was called: for a task with a deadline, where it was spawned.
    ///
    /// ```
    /// # use std::{future::pending, time::Duration};
    /// let late = paceline::block_on(paceline::timeout(Duration::ZERO, pending::<()>())).unwrap_err();
    /// assert_eq!(late.given_at().line(), line!() - 1);
    /// ```
    pub fn given_at(&self) -> &'static Location<'static> {
        self.given_at
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not done within {:?}, given at {}", self.duration, self.given_at)
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(late: Elapsed) -> Self {
        io::Error::new(io::ErrorKind::TimedOut, late)
    }
}
