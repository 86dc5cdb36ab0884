//! The switch on Linux: a timer, or a condition variable if the system refuses timers, as a sandbox may.

use std::io;
use std::time::Duration;

#[path = "switch_condvar.rs"]
mod condvar;
#[path = "switch_timer.rs"]
mod timer;

use crate::reactor::unless_refused;

/// The place in which the deputy sleeps.
#[derive(Debug)]
pub(crate) struct Switch(Kind);

#[derive(Debug)]
enum Kind {
    Timer(timer::Switch),
    Condvar(condvar::Switch),
}

impl Switch {
    /// Creates a timer, or a condition variable if the system refuses a timer. Other errors are returned.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(match unless_refused(timer::Switch::new())? {
            Some(timer) => Kind::Timer(timer),
            None => Kind::Condvar(condvar::Switch::new()?),
        }))
    }

    /// Ends the sleep in progress after this time, which replaces an earlier setting. `Duration::MAX` is
    /// never.
    pub(crate) fn arm(&self, after: Duration) {
        match &self.0 {
            Kind::Timer(switch) => switch.arm(after),
            Kind::Condvar(switch) => switch.arm(after),
        }
    }

    /// Ends the sleep in progress now. A sleep that begins later does not notice this.
    pub(crate) fn ring(&self) {
        match &self.0 {
            Kind::Timer(switch) => switch.ring(),
            Kind::Condvar(switch) => switch.ring(),
        }
    }

    /// Sleeps until the time set by `arm` or `ring` has come. Sets `limit` first (`None` is never), which
    /// replaces an earlier setting; an `arm` during the sleep replaces the limit. Calls `cancelled` after
    /// that, and returns at once if the result is true. So a caller that changes what `cancelled` reads
    /// before it arms or rings the switch is not missed.
    pub(crate) fn sleep(&self, limit: Option<Duration>, cancelled: impl FnOnce() -> bool) {
        match &self.0 {
            Kind::Timer(switch) => switch.sleep(limit, cancelled),
            Kind::Condvar(switch) => switch.sleep(limit, cancelled),
        }
    }
}
