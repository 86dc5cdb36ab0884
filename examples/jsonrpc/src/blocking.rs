//! Methods that block: each call is a [`Job`] with a deadline, on threads for blocking calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use paceline::blocking::{CancelToken, Job, JobError};
use serde::Serialize;

use crate::call::Call;
use crate::dispatcher::{Dispatcher, text};
use crate::{Error, Limits};

impl Dispatcher {
    /// Adds a method that may block its thread, and may never return: the caller gets an error after
    /// the timeout.
    ///
    /// A closure that continues keeps its thread, because no thread can be stopped from outside, so handlers
    /// should check their token. The closure also keeps its place among the `most` calls that may run at
    /// once: further calls are refused at once, and cost no thread.
    pub fn blocking<R, H>(self, name: &str, timeout: Duration, most: usize, handler: H) -> Self
    where
        R: Serialize,
        H: Fn(Call, CancelToken) -> Result<R, Error> + Send + Sync + 'static,
    {
        let Limits { message, .. } = self.limits;
        let (handler, running) = (Arc::new(handler), Arc::<AtomicUsize>::default());
        self.add(name, move |call| {
            let Some(place) = Place::take(&running, most) else {
                return Box::pin(async { Err(Error::new(Error::BUSY, "Too many of these run")) });
            };
            let handler = handler.clone();
            let name = call.method.clone();
            let job = Job::with_token(move |token| {
                // Held until the handler returns, even if its caller no longer waits.
                let _place = place;
                handler(call, token).and_then(|result| text(&result, message))
            });
            let job = job.name(name).timeout(timeout).submit();
            Box::pin(async {
                job.await.unwrap_or_else(|error| match error {
                    JobError::TimedOut { .. } => Err(Error::new(Error::LATE, "Too late").about(error)),
                    error => Err(Error::internal(error)),
                })
            })
        })
    }
}

/// One of the places for running calls.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(running: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let place = (running.fetch_add(1, Ordering::Relaxed), Self(running.clone()));
        (place.0 < most).then_some(place.1)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
