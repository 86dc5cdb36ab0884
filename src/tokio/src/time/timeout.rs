//! [`Timeout`]: a future with a time limit.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use real::task::coop::{has_budget_remaining, unconstrained};

use super::error::Elapsed;
use super::{Duration, Instant, Sleep};

#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    let delay = Sleep::after(duration);
    Timeout { value: future.into_future(), delay }
}

#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    let delay = Some(Sleep::at(deadline));
    Timeout { value: future.into_future(), delay }
}

pin_project! {
    /// A future with a time limit.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        value: T,
        // `None` is beyond the clock.
        #[pin]
        delay: Option<Sleep>,
    }
}

impl<T> Timeout<T> {
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let had_budget = has_budget_remaining();
        if let Poll::Ready(value) = this.value.poll(cx) {
            return Poll::Ready(Ok(value));
        }
        match this.delay.as_pin_mut() {
            Some(delay) => poll_delay(delay, had_budget, cx).map(|()| Err(Elapsed::new())),
            None => Poll::Pending,
        }
    }
}

/// A future that always uses up the task's budget must not keep its own timeout from being checked.
fn poll_delay(delay: Pin<&mut Sleep>, had_budget: bool, cx: &mut Context<'_>) -> Poll<()> {
    if had_budget && !has_budget_remaining() {
        Pin::new(&mut unconstrained(delay)).poll(cx)
    } else {
        delay.poll(cx)
    }
}
