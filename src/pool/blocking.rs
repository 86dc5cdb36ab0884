//! The threads for closures that block that belong to a pool, or to the default instance.

use std::env;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::{Pool, instance, stay};
use crate::blocking_threads::{Owner, Threads};

/// Limit of the threads if the program sets none.
const DEFAULT_BLOCKING_THREADS: usize = 500;

impl Owner for Pool {
    fn call(self: Arc<Self>, work: &mut dyn FnMut()) {
        self.visit(work);
    }

    fn thread_name(&self, number: usize) -> Option<String> {
        self.crew()?.given_thread_name(number)
    }

    fn stack_size(&self) -> Option<usize> {
        self.crew()?.config.stack_size
    }

    fn spin(&self) -> Duration {
        self.tuning.spin
    }

    fn finishes_queue(&self) -> bool {
        self.crew().is_some_and(|crew| crew.config.in_place_of_tokio)
    }
}

impl Pool {
    /// Returns the threads for closures that block in this pool. The first call makes the value, and starts
    /// no thread.
    pub(crate) fn blocking(self: &Arc<Self>) -> Arc<Threads> {
        if self.is_default.is_set() {
            return default_blocking();
        }
        // `OnceLock` is not modelled, because making the threads is no step of a model.
        self.blocking
            .get_or_init(|| Arc::new(Threads::new(DEFAULT_BLOCKING_THREADS, Some(self.clone()))))
            .clone()
    }

    /// Returns the threads for closures that block in this pool, if a call has made them.
    pub(crate) fn blocking_if_any(&self) -> Option<&Arc<Threads>> {
        if self.is_default.is_set() { instance::blocking_of_the_process() } else { &self.blocking }.get()
    }
}

/// Returns the threads for closures that block in the pool that the calling thread is in, or else those of
/// the default instance.
pub(crate) fn current_blocking() -> Arc<Threads> {
    stay::with_current_pool(Pool::blocking).unwrap_or_else(default_blocking)
}

/// Returns the threads for closures that block in the default instance. This does not make that instance.
///
/// # Panics
///
/// Panics if `PACELINE_BLOCKING_THREADS` is not a positive number, and this is the first call.
pub(crate) fn default_blocking() -> Arc<Threads> {
    let place = instance::blocking_of_the_process();
    place.get_or_init(|| Arc::new(Threads::new(limit_from_environment(), None))).clone()
}

/// Returns the number in `PACELINE_BLOCKING_THREADS`, or [`DEFAULT_BLOCKING_THREADS`] if the variable is
/// not set or is not Unicode. Panics if it has any other value than a positive number.
fn limit_from_environment() -> usize {
    let Ok(text) = env::var("PACELINE_BLOCKING_THREADS") else { return DEFAULT_BLOCKING_THREADS };
    match text.parse().map(NonZeroUsize::get) {
        Ok(threads) => threads,
        Err(_) => {
            panic!("PACELINE_BLOCKING_THREADS is {text:?}; it should be a positive number of threads")
        }
    }
}
