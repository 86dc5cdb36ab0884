//! [`Condvar`]: that of shuttle, with timeouts that happen.

use std::sync::{Arc, LockResult, PoisonError};
use std::time::Duration;

use super::clock::{Alarm, Instant};
use super::{MutexGuard, cores};

#[derive(Debug, Default)]
pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

/// Whether a wait ended because its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        cores::fall_asleep();
        self.0.wait(guard)
    }

    /// Like `std`'s, this may return spuriously: at another waiter's timeout.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let Some(deadline) = Instant::now().checked_add(limit) else {
            return both(self.wait(guard), false);
        };
        if limit.is_zero() {
            return Ok((guard, WaitTimeoutResult(true)));
        }
        let _alarm = Alarm::set(deadline, &self.0);
        let result = self.wait(guard);
        both(result, deadline <= Instant::now())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Adds to the result of a wait whether it was `late`, also if the lock is poisoned.
fn both<G>(result: LockResult<G>, late: bool) -> LockResult<(G, WaitTimeoutResult)> {
    match result {
        Ok(guard) => Ok((guard, WaitTimeoutResult(late))),
        Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), WaitTimeoutResult(late)))),
    }
}
