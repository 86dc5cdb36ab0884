//! Measures for how long threads lead, in a build with `--cfg paceline_contention`.
//!
//! One leadership in [`EACH`] is timed, by two readings of the thread's processor clock: from the moment at
//! which the thread has taken leadership to the moment at which it is vacant again. This is the time in which
//! no other thread can get an event although one may be there. So it does not include the time in which the
//! leader sleeps in the poller, or has found nothing and looks again before it sleeps; nor the time in which
//! the thread waits for a core, since a machine with enough cores has none. What the poller does without
//! sleeping counts.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::time::{ClockId, clock_gettime};

/// Leaderships of a thread of which one is timed. A prime, so that it is not always the first of a batch; and
/// as many as make the clock cost little in comparison with what is measured.
const EACH: u64 = 31;

static TIMED: AtomicU64 = AtomicU64::new(0);
static NANOS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static UNTIMED: Cell<u64> = const { Cell::new(0) };
}

/// The time under leadership of all threads of the process since it started, extrapolated from the
/// leaderships that were timed. Only in a build with `--cfg paceline_contention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeLed {
    /// How often leadership was taken.
    pub leaderships: u64,
    /// The processor time of the leaders, without that of the clock.
    pub nanos: u64,
    /// The time between two readings of the clock with nothing in between, which was subtracted from each
    /// leadership that was timed.
    pub clock_nanos: u64,
}

/// Returns the time under leadership so far. Only in a build with `--cfg paceline_contention`.
///
/// ```
/// paceline::block_on(paceline::Timer::after(std::time::Duration::from_millis(1)));
/// assert!(paceline::time_led().clock_nanos > 0);
/// ```
pub fn time_led() -> TimeLed {
    let (timed, nanos, clock_nanos) = (TIMED.load(Relaxed), NANOS.load(Relaxed), clock_nanos());
    TimeLed {
        leaderships: timed * EACH,
        nanos: nanos.saturating_sub(timed * clock_nanos) * EACH,
        clock_nanos,
    }
}

/// Returns the median time between two readings with nothing in between.
fn clock_nanos() -> u64 {
    static NANOS: OnceLock<u64> = OnceLock::new();
    *NANOS.get_or_init(|| {
        let mut gaps: Vec<u64> = (0..10_001).map(|_| now().abs_diff(now())).collect();
        gaps.sort_unstable();
        gaps[gaps.len() / 2]
    })
}

/// Returns the processor time of this thread.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of one leadership.
#[derive(Debug)]
pub(super) struct LeaderClock(Option<u64>);

impl LeaderClock {
    /// Reads the clock if this leadership is timed.
    pub(super) fn start() -> Self {
        let is_timed = UNTIMED.with(|untimed| {
            untimed.set((untimed.get() + 1) % EACH);
            untimed.get() == 0
        });
        Self(is_timed.then(now))
    }

    /// Forgets the time so far, if this leadership is timed.
    pub(super) fn start_anew(&mut self) {
        if let Self(Some(start)) = self {
            *start = now();
        }
    }

    /// Adds the time since the last start.
    pub(super) fn stop(&self) {
        if let Self(Some(start)) = self {
            NANOS.fetch_add(now() - start, Relaxed);
            TIMED.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Other tests lead meanwhile, so the time grows by at least this much.
    #[test]
    fn the_time_led_is_processor_time_of_one_leadership_in_some() {
        let before = time_led();
        for at in 0..2 * EACH {
            let clock = LeaderClock::start();
            assert_eq!(clock.0.is_some(), at % EACH == EACH - 1);
            if clock.0.is_some() {
                std::thread::sleep(Duration::from_millis(2));
                let start = now();
                while now() - start < 1_000_000 {}
                clock.stop();
            }
        }
        let after = time_led();
        assert!(after.leaderships >= before.leaderships + 2 * EACH);
        assert!(after.nanos >= before.nanos + 2 * EACH * 1_000_000);
        assert_eq!(before.clock_nanos, after.clock_nanos);
    }

    #[test]
    fn a_sleep_is_not_processor_time() {
        let start = now();
        std::thread::sleep(Duration::from_millis(20));
        assert!(now() - start < 10_000_000);
    }
}
