//! The switch where there is no timer to sleep in: a condition variable. To arm it wakes the deputy once, which then
//! sleeps on.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{self, Condvar, Instant, Mutex};

/// What the deputy sleeps in.
#[derive(Debug)]
pub(super) struct Switch {
    /// When the sleep in progress, or the next one, ends; `None` is never.
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

    /// It does not, unless it is armed again. Who disarms it finds all that was changed before it was armed or rung.
    pub(super) fn disarm(&self) {
        *sync::lock(&self.until) = None;
    }

    /// The sleep in progress, or the next one, ends now.
    pub(super) fn ring(&self) {
        self.arm(Duration::ZERO);
    }

    /// Sleeps until the switch is armed and its time has come, which may be already: then the sleep is over at once.
    pub(super) fn sleep(&self) {
        let mut until = sync::lock(&self.until);
        loop {
            until = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.changed.wait_timeout(until, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(until).unwrap_or_else(PoisonError::into_inner),
            };
        }
        *until = None;
    }

    /// The same, for `limit` at most. `cancelled` is asked after the limit was set: so a switch that was armed or rung just
    /// before it, whose setting the limit has replaced, is not missed if that shows in what `cancelled` looks at.
    pub(super) fn sleep_for(&self, limit: Duration, cancelled: impl FnOnce() -> bool) {
        self.arm(limit);
        if !cancelled() {
            self.sleep();
        }
    }
}
