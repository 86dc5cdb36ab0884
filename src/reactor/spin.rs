//! Whether to spin before sleeping.
//!
//! A thread that is about to sleep in the poller is cheap to keep awake for a moment and dear to wake. It pays to
//! keep it awake when events come one by one, so that each would pay for a sleep, and come soon. So two things
//! are averaged: how many events a *busy period* has (from one real sleep to the next moment without work), and
//! how long the gaps without work are. Spinning hides the sleeps from the first average; every 64th idle moment
//! therefore sleeps for real, as a probe.
//!
//! All of it is state of the leader, hence plain variables. A clock is read only at moments without work.

use std::time::Duration;

use crate::sync::Instant;

/// Busy periods shorter than this make spinning start; see [`LONG`].
const SHORT: u32 = 8;
/// Busy periods longer than this make it end. The distance to `SHORT` keeps it from going back and forth.
const LONG: u32 = 12;
/// One idle moment in this many sleeps for real.
const PROBE: u32 = 64;
/// A moving average moves by one part in this many.
const WEIGHT: u32 = 8;
/// Averages are kept in fractions this fine.
const FINE: u32 = 16;

/// The leader's memory of how events come.
#[derive(Debug)]
pub(super) struct Spin {
    limit: Duration,
    /// Events since the last real sleep; `None` once the busy period is over.
    busy: Option<u32>,
    /// Average events of a busy period, in fractions.
    average_busy: u32,
    /// Average gap, no single one counted as more than four limits.
    average_gap: Duration,
    events_come_singly: bool,
    idle_moments: u32,
}

/// A moment without work, from when it began.
#[derive(Debug)]
pub(super) struct Idle {
    since: Instant,
    pub(super) spin_until: Instant,
    pub(super) spins: bool,
}

impl Spin {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            busy: None,
            average_busy: LONG * FINE,
            average_gap: limit,
            events_come_singly: false,
            idle_moments: 0,
        }
    }

    pub(super) fn is_off(&self) -> bool {
        self.limit.is_zero()
    }

    /// Events were found.
    #[inline]
    pub(super) fn saw(&mut self, events: usize) {
        if let Some(busy) = &mut self.busy {
            *busy = busy.saturating_add(events as u32);
        }
    }

    /// There is nothing to do: is it worth staying awake for a moment?
    pub(super) fn idle(&mut self) -> Idle {
        if let Some(busy) = self.busy.take() {
            let busy = busy.min(4 * LONG) * FINE;
            self.average_busy = self.average_busy - self.average_busy / WEIGHT + busy / WEIGHT;
            let bound = if self.events_come_singly { LONG } else { SHORT };
            self.events_come_singly = self.average_busy < bound * FINE;
        }
        self.idle_moments = self.idle_moments.wrapping_add(1);
        let probe = self.idle_moments % PROBE == 0;
        let spins = self.events_come_singly && self.average_gap < self.limit && !probe;
        let since = Instant::now();
        Idle { since, spin_until: since + self.limit, spins }
    }

    /// The moment is over; `slept` if the thread really slept at its end. Returns how long it was.
    pub(super) fn over(&mut self, idle: &Idle, slept: bool) -> Duration {
        let gap = idle.since.elapsed();
        let counted = gap.min(4 * self.limit);
        self.average_gap = self.average_gap - self.average_gap / WEIGHT + counted / WEIGHT;
        if slept {
            self.busy = Some(0);
        }
        gap
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn period(spin: &mut Spin, events: usize) -> bool {
        spin.saw(events);
        let idle = spin.idle();
        // A gap of no length: only the busy periods decide.
        let since = Instant::now();
        spin.over(&Idle { since, ..idle }, true);
        idle.spins
    }

    #[test]
    fn events_that_come_singly_make_it_spin_and_crowds_do_not() {
        let mut spin = Spin::new(Duration::from_secs(1));
        assert!(!period(&mut spin, 1), "it does not spin before it knows");
        assert!((0..100).filter(|_| period(&mut spin, 1)).count() > 80);
        assert!((0..100).filter(|_| period(&mut spin, 60)).count() < 20);
    }

    #[test]
    fn every_so_often_it_sleeps_for_real() {
        let mut spin = Spin::new(Duration::from_secs(1));
        (0..100).for_each(|_| {
            period(&mut spin, 1);
        });
        let slept = (0..PROBE).filter(|_| !period(&mut spin, 1)).count();
        assert_eq!(slept, 1);
    }

    #[test]
    fn long_gaps_end_it() {
        let mut spin = Spin::new(Duration::from_millis(1));
        (0..100).for_each(|_| {
            period(&mut spin, 1);
        });
        for _ in 0..20 {
            let idle = spin.idle();
            spin.over(&Idle { since: Instant::now() - Duration::from_millis(50), ..idle }, true);
        }
        assert!(!period(&mut spin, 1));
    }
}
