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

/// Gives `future` so much time: its output, or [`TimedOut`].
///
/// The time counts from this call. The future is always polled before the clock is asked, so one that is ready wins, even with a
/// `duration` of zero; a `duration` that is too long for the clock sets no limit. A future that is ready at its first poll
/// costs no timer.
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
/// A task with a deadline is one that is spawned so. When its time is over it is cancelled at the await that it is in, and the error
/// names this line, to whoever awaits the task, or to a log:
///
/// ```
/// # use std::time::Duration;
/// # use paceline::{block_on, spawn, timeout};
/// # async fn serve() { std::future::pending().await }
/// # let (tell, told) = std::sync::mpsc::channel();
/// # let log = move |late: paceline::TimedOut| tell.send(late.to_string()).unwrap();
/// let handler = timeout(Duration::from_millis(5), serve());
/// spawn(async { handler.await.unwrap_or_else(log) }).detach();
/// # assert!(told.recv().unwrap().contains("given at"));
/// ```
///
/// # Panics
///
/// If the future does; and as [`Timer`] does, where there is no reactor to be had.
///
/// # Cancel safety
///
/// Dropping it drops the future. After [`TimedOut`] the future is there until this is dropped, which `.await` does at once; give
/// it a `&mut` to a future that is to go on.
#[track_caller]
pub fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    let limit = TimedOut { duration, given_at: Location::caller() };
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
        limit: TimedOut,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimedOut>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(this.timer).poll(cx).map(|_| Err(*this.limit))
    }
}

/// A future was not done in time: see [`timeout`].
///
/// It becomes an [`io::Error`] of kind [`TimedOut`](io::ErrorKind::TimedOut) by `?`, which has this as its source.
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
pub struct TimedOut {
    duration: Duration,
    given_at: &'static Location<'static>,
}

impl TimedOut {
    /// How long the future had.
    ///
    /// ```
    /// # use std::{future::pending, time::Duration};
    /// let late = paceline::block_on(paceline::timeout(Duration::ZERO, pending::<()>())).unwrap_err();
    /// assert_eq!(late.duration(), Duration::ZERO);
    /// ```
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Where [`timeout`] was called: for a task with a deadline, where it was spawned.
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

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not done within {:?}, given at {}", self.duration, self.given_at)
    }
}

impl Error for TimedOut {}

impl From<TimedOut> for io::Error {
    fn from(late: TimedOut) -> Self {
        io::Error::new(io::ErrorKind::TimedOut, late)
    }
}
