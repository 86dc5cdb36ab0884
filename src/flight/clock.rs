//! [`NoteClock`]: the time of a note.
//!
//! A note takes some nanoseconds, but a reading of the monotonic clock takes some dozens. If the kernel
//! itself keeps its time by the processor's time stamp counter, this counter has the same value on all cores
//! and never stops. Then notes have the count, which is converted when the notes are read. Elsewhere they
//! have the nanoseconds of the monotonic clock.
//!
//! In a simulation, notes have the virtual time, which stands while tasks are ready. So each note is at least
//! a nanosecond later than the one before, and a trace shows the order of the notes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::simulated;

#[derive(Debug)]
pub(super) struct NoteClock {
    started: Instant,
    /// The value of the processor's counter at the start, if the counter is used.
    counter: Option<u64>,
    /// The start and the last note in virtual nanoseconds, if the clock is that of a simulation.
    simulated: Option<(u64, AtomicU64)>,
}

/// How many nanoseconds a number of ticks is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    nanos: u64,
    ticks: u64,
}

impl NoteClock {
    /// Starts the clock.
    pub(super) fn start(is_simulated: bool) -> Self {
        let begin = if is_simulated { simulated::elapsed() } else { None };
        let simulated = begin.map(|begin| (begin.as_nanos() as u64, AtomicU64::new(0)));
        let counts = simulated.is_none() && counter::is_reliable();
        Self { started: Instant::now(), counter: counts.then(counter::read), simulated }
    }

    /// Returns the ticks since the start.
    #[inline]
    pub(super) fn ticks(&self) -> u64 {
        match self.counter {
            Some(start) => counter::read().wrapping_sub(start),
            None => self.nanos(),
        }
    }

    /// Returns the nanoseconds since the start, of virtual time if the clock is that of a simulation.
    fn nanos(&self) -> u64 {
        let Some((begin, last)) = &self.simulated else { return self.elapsed_nanos() };
        // One thread is in the simulation. When it has left, time goes on by the notes alone.
        let now =
            simulated::elapsed().map_or(0, |elapsed| (elapsed.as_nanos() as u64).saturating_sub(*begin));
        let note = now.max(last.load(Ordering::Relaxed) + 1);
        last.store(note, Ordering::Relaxed);
        note
    }

    /// Returns the ticks since the start, not earlier than the caller's last read of memory. So a thread that
    /// finds a flag set gets a later time than the thread that read the clock before it set the flag.
    #[inline]
    pub(super) fn ticks_after_reads(&self) -> u64 {
        counter::wait_for_reads();
        self.ticks()
    }

    fn elapsed_nanos(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Returns the scale, as far as it is known by now: the longer the clock runs, the more exact it is.
    pub(super) fn scale(&self) -> Scale {
        match self.counter {
            Some(_) => Scale { ticks: self.ticks().max(1), nanos: self.elapsed_nanos() },
            None => Scale { ticks: 1, nanos: 1 },
        }
    }
}

impl Scale {
    pub(super) fn nanos(self, ticks: u64) -> u64 {
        (u128::from(ticks) * u128::from(self.nanos) / u128::from(self.ticks)) as u64
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod counter {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    use std::fs;

    /// Returns whether the kernel keeps its time by the counter.
    pub(super) fn is_reliable() -> bool {
        let source = fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        source.is_ok_and(|source| source == b"tsc\n")
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: all processors of this architecture have the counter, and a kernel that keeps its time by
        // it lets programs read it.
        unsafe { _rdtsc() }
    }

    #[inline]
    pub(super) fn wait_for_reads() {
        // SAFETY: all processors of this architecture have the instruction.
        unsafe { _mm_lfence() }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
mod counter {
    pub(super) fn is_reliable() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        unreachable!("the counter is not reliable")
    }

    #[inline]
    pub(super) fn wait_for_reads() {}
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Measures that the counter and the clock agree within a thousandth, after some milliseconds. The
    /// arithmetic is exact in `large_counts_do_not_overflow`.
    #[test]
    #[ignore = "timed: the counter agrees with the clock"]
    fn ticks_become_nanoseconds() {
        let monotonic = NoteClock { counter: None, ..NoteClock::start(false) };
        let clock = NoteClock::start(false);
        for clock in [monotonic, clock] {
            let before = clock.started.elapsed();
            let ticks = clock.ticks_after_reads();
            let after = clock.started.elapsed();
            std::thread::sleep(Duration::from_millis(20));
            let nanos = clock.scale().nanos(ticks);
            let slack = after / 1000 + Duration::from_micros(20);
            assert!(Duration::from_nanos(nanos) + slack >= before, "{nanos} ns, {before:?}");
            assert!(Duration::from_nanos(nanos) <= after + slack, "{nanos} ns, {after:?}");
        }
    }

    #[test]
    fn large_counts_do_not_overflow() {
        let scale = Scale { nanos: u64::MAX / 3, ticks: u64::MAX };
        assert_eq!(scale.nanos(9_000_000_000_000), 3_000_000_000_000);
    }
}
