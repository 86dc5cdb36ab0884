//! The switch on Linux: a timer that the deputy sleeps in. To set it costs one system call and wakes nobody, so that a
//! deputy does not see a burst of work that is over within a tick.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// What the deputy sleeps in.
#[derive(Debug)]
pub(super) struct Switch(OwnedFd);

const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 1 };

impl Switch {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// The sleep in progress, or the next one, ends after this time.
    pub(super) fn arm(&self, after: Duration) {
        // Beyond the end of time is never.
        self.set(Timespec::try_from(after).unwrap_or(NEVER));
    }

    /// The sleep in progress ends now.
    pub(super) fn ring(&self) {
        self.set(NOW);
    }

    /// Sleeps until the switch is armed and its time has come; without a limit if there is none. `cancelled` is asked
    /// after the limit was set: so a switch that was armed or rung just before it, whose setting the limit has replaced,
    /// is not missed if that shows in what `cancelled` looks at.
    pub(super) fn sleep(&self, limit: Option<Duration>, cancelled: impl FnOnce() -> bool) {
        self.arm(limit.unwrap_or(Duration::MAX));
        if !cancelled() {
            while rustix::io::read(&self.0, &mut [0u8; 8]) == Err(rustix::io::Errno::INTR) {}
        }
    }

    fn set(&self, value: Timespec) {
        let timer = Itimerspec { it_interval: NEVER, it_value: value };
        // It fails only for a descriptor that is none.
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &timer);
    }
}
