//! Builds in which nothing is observed: see `observation_on.rs`, which has the same names.

use std::task::Waker;

use super::meta::SpawnMeta;

/// A future that is perhaps observed: here, the future.
pub type Watched<F> = F;

/// The data beside a future or a closure: here, none.
#[derive(Debug)]
pub struct Observation(());

impl SpawnMeta<'_> {
    /// Returns the future.
    #[inline]
    pub fn watch<F>(self, future: F) -> Watched<F> {
        future
    }

    /// Returns the future.
    #[inline]
    pub(crate) fn watch_in<F>(self, future: F, _executor: usize, _number: Option<u64>) -> Watched<F> {
        future
    }

    /// Returns the observation of a closure.
    #[inline]
    pub fn observe(self, _size: usize) -> Observation {
        Observation(())
    }
}

impl Observation {
    /// Calls the closure.
    #[inline]
    pub fn inside<R>(&mut self, code: impl FnOnce() -> R) -> R {
        code()
    }

    /// Returns the closure.
    pub(crate) fn wrap<F>(self, body: F) -> F {
        body
    }
}

/// Returns the waker.
#[inline]
pub(crate) fn unwrapped(waker: &Waker) -> &Waker {
    waker
}

/// Returns false.
#[inline]
pub(crate) fn is_wrapped(_: &Waker) -> bool {
    false
}
