//! The switch on Linux: a timer that the deputy sleeps in. Setting it costs one system call and wakes no
//! thread, so a burst of work that is over within a tick does not wake the deputy.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::notice::or_abort;

/// The place in which the deputy sleeps. Its methods abort the process if the timer has been closed.
#[derive(Debug)]
pub(crate) struct Switch(OwnedFd);

const DISARMED: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 1 };

impl Switch {
    /// Creates the timer, and sets it once, so that a system that refuses that is found here.
    pub(crate) fn new() -> io::Result<Self> {
        let this = Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?);
        this.set(DISARMED)?;
        Ok(this)
    }

    /// Ends the sleep in progress after this time, which replaces an earlier setting. `Duration::MAX` is
    /// never.
    pub(crate) fn arm(&self, after: Duration) {
        // A time that is too long for the system means never.
        or_abort(self.set(Timespec::try_from(after).unwrap_or(DISARMED)));
    }

    /// Ends the sleep in progress now.
    pub(crate) fn ring(&self) {
        or_abort(self.set(NOW));
    }

    /// Sleeps until the switch was armed and its time has come, or until the limit; not at all if
    /// `cancelled`. Calls `cancelled` after it has set the limit, which replaces an earlier setting: a caller
    /// that changes what `cancelled` reads before it arms or rings the switch is not missed.
    pub(crate) fn sleep(&self, limit: Option<Duration>, cancelled: impl FnOnce() -> bool) {
        self.arm(limit.unwrap_or(Duration::MAX));
        if !cancelled() {
            // Without the read the deputy would look again and again.
            or_abort(
                rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut [0u8; 8]))
                    .map_err(io::Error::from),
            );
        }
    }

    /// Has the timer fire once after this time, in place of an earlier setting; [`DISARMED`] is never.
    fn set(&self, value: Timespec) -> io::Result<()> {
        let timer = Itimerspec { it_interval: DISARMED, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }
}
