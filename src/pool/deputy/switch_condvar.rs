//! The switch on systems without a timer that a thread can sleep in: a condition variable. Arming it wakes
//! the deputy once, and the deputy sleeps on until the new time.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{self, Condvar, Instant, Mutex};

/// The place in which the deputy sleeps.
#[derive(Debug)]
pub(crate) struct Switch {
    /// When the sleep in progress ends; `None` means never.
    until: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Switch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { until: Mutex::new(None), changed: Condvar::new() })
    }

    /// Ends the sleep in progress after this time, which replaces an earlier setting. Wakes the deputy once,
    /// to sleep on until then. `Duration::MAX` is never.
    pub(crate) fn arm(&self, after: Duration) {
        *sync::lock(&self.until) = Instant::now().checked_add(after);
        self.changed.notify_one();
    }

    /// Ends the sleep in progress now.
    pub(crate) fn ring(&self) {
        self.arm(Duration::ZERO);
    }

    /// Sleeps until the switch was armed and its time has come, or until the limit; not at all if
    /// `cancelled`. Calls `cancelled` after it has set the limit, which replaces an earlier setting: a caller
    /// that changes what `cancelled` reads before it arms or rings the switch is not missed.
    pub(crate) fn sleep(&self, limit: Option<Duration>, cancelled: impl FnOnce() -> bool) {
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
