//! The calls of `on_thread_park` and `on_thread_unpark`.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;

use super::{Crew, Pool, crew, stay};

impl Crew {
    /// Awaits `run`, by which the calling thread polls the crew's tasks. Calls the park hook each time that
    /// `run` has nothing left to poll, and the unpark hook before `run` is polled again. The thread does not
    /// lead meanwhile (LF3), and looks for tasks and events after the park hook, before it sleeps.
    pub(super) async fn with_park_hooks<T>(&self, pool: &Arc<Pool>, run: impl Future<Output = T>) -> T {
        let (park, unpark) = (self.config.on_park.as_ref(), self.config.on_unpark.as_ref());
        let has_hooks = park.or(unpark).is_some();
        let (mut run, mut is_parked) = (pin!(run), false);
        poll_fn(|cx| {
            if mem::take(&mut is_parked) {
                stay::call_hook(|| crew::call(pool, unpark));
            }
            let polled = run.as_mut().poll(cx);
            if has_hooks && polled.is_pending() && !stay::is_woken() {
                is_parked = true;
                stay::call_hook(|| crew::call(pool, park));
            }
            polled
        })
        .await
    }
}
