//! The switch where there is no timer to sleep in: a condition variable. To arm it wakes the deputy once, which then
//! sleeps on.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{self, Condvar, Instant, Mutex};

/// What the deputy sleeps in.
#[derive(Debug)]
pub(super) struct Switch {
    /// When the sleep in progress ends; `None` is never.
    until: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Switch {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { until: Mutex::new(None), changed: Condvar::new() })
    }

    /// The sleep in progress, or the next one, ends after this time.
    pub(super) fn arm(&self, after: Duration) {
        *sync::lock(&self.until) = Instant::now().checked_add(after);
        self.changed.notify_one();
    }

    /// The sleep in progress ends now.
    pub(super) fn ring(&self) {
        self.arm(Duration::ZERO);
    }

    /// Sleeps until the switch is armed and its time has come; without a limit if there is none. `cancelled` is asked
    /// after the limit was set: so a switch that was armed or rung just before it, whose setting the limit has replaced,
    /// is not missed if that shows in what `cancelled` looks at.
    pub(super) fn sleep(&self, limit: Option<Duration>, cancelled: impl FnOnce() -> bool) {
        self.arm(limit.unwrap_or(Duration::MAX));
        if cancelled() {
            return;
        }
        let mut until = sync::lock(&self.until);
        loop {
            until = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return,
                Some(left) => {
                    self.changed.wait_timeout(until, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(until).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
