//! The times at which a paced load sends. A missed time is skipped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A clock that ticks in a descriptor. The kernel keeps the time, so a late sender does not shift later
/// ticks.
pub(super) struct Pace {
    every: Duration,
    timer: OwnedFd,
}

impl Pace {
    /// Creates a clock that is stopped until [`start`](Pace::start).
    pub(super) fn new(every: Duration) -> io::Result<Pace> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Pace { every, timer: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// The first tick comes after one interval.
    pub(super) fn start(&self) -> io::Result<()> {
        let every = Timespec { tv_sec: self.every.as_secs() as _, tv_nsec: self.every.subsec_nanos().into() };
        let times = Itimerspec { it_interval: every, it_value: every };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }

    /// Returns whether a tick has come since the last call. Several ticks count as one.
    pub(super) fn ticked(&self) -> io::Result<bool> {
        let mut ticks = [0; 8];
        match rustix::io::read(&self.timer, &mut ticks) {
            Err(Errno::AGAIN) => Ok(false),
            other => Ok(other? > 0),
        }
    }
}

impl AsFd for Pace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn missed_ticks_are_not_made_up_for() {
        let pace = Pace::new(Duration::from_millis(50)).unwrap();
        assert!(!pace.ticked().unwrap(), "the pace was not started");
        pace.start().unwrap();
        std::thread::sleep(Duration::from_millis(170));
        assert_eq!([pace.ticked().unwrap(), pace.ticked().unwrap()], [true, false]);
    }

    #[test]
    fn a_late_look_does_not_shift_the_next_tick() {
        let every = Duration::from_millis(60);
        let pace = Pace::new(every).unwrap();
        let start = Instant::now();
        pace.start().unwrap();
        std::thread::sleep(every + every / 2);
        assert!(pace.ticked().unwrap());
        while !pace.ticked().unwrap() && start.elapsed() < 4 * every {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Counted from the late read, the time would be two and a half.
        let took = start.elapsed();
        assert!(took >= 2 * every - Duration::from_millis(1) && took < 2 * every + every / 2, "{took:?}");
    }
}
