//! [`Ways`]: whether a pool that is busy all the time gets more done when no thread is spared.
//!
//! [`Gain`] learns whether a wake was worth its way, as far as those two threads can see. They do not see what a thread is worth by
//! being there: where other programs want the cores as well, a pool of which one thread runs gets one share of them, one of which two
//! run gets two, and while the one has no core the other may have. Nor do they see what it takes from those whom the pool serves. So the
//! deputy, which looks once a tick anyway, tries both ways and keeps to the one in which more events are processed.
//!
//! | way | ends after | next |
//! |---|---|---|
//! | *learned*: wakes are as rare as they paid | a [`WHILE`] | *lavish*, if it was busy all the time; else *learned* |
//! | *lavish*: each event that is left wakes somebody | a [`WHILE`] | *kept* |
//! | *kept*: the better of the two | some whiles, twice as many each time that it is the same; sooner if it is not busy, or no longer as good | *learned*; from *lavish*, *settling* first |
//! | *settling*: learned, but it does not count how | a [`WHILE`] | *learned* |
//!
//! After a [`REST`] it begins anew. A deputy that does not look leaves the pool in one of the two ways, and both are sound.

use std::time::Duration;

use crate::gain::Gain;
use crate::sync::Instant;

/// How long a way is tried: long beside the slices of time in which cores are given to other programs.
const WHILE: Duration = Duration::from_millis(50);
/// For how many whiles the better one is kept, at first and at most.
const KEPT: [u32; 2] = [8, 64];
/// By how much the lavish one, which costs switches, has to be better.
const BETTER: f64 = 1.1;
/// Events in a while of a pool that is busy; and how many of them there are at least for each time that a leader slept.
const BUSY: [u64; 2] = [100, 8];
/// Who was not looked at for so long had nothing to do.
const REST: Duration = Duration::from_millis(100);

/// How much had been done at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) at: Instant,
    pub(super) events: u64,
    pub(super) sleeps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Learned,
    /// Events a second in the learned way, just before.
    Lavish {
        learned: f64,
    },
    /// For so many whiles more, if it stays busy.
    Kept {
        left: u32,
    },
    /// What is done still profits from the lavish way: long queues, in which each look finds much.
    Settling,
}

/// Which way was the better one.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    lavish: bool,
    /// For how many whiles it was kept.
    whiles: u32,
    /// Less than that, and it would not have been the better one.
    least: f64,
}

/// What is tried right now, and what came of it.
#[derive(Debug)]
pub(super) struct Ways {
    way: Way,
    began: Option<Done>,
    looked: Option<Instant>,
    verdict: Option<Verdict>,
}

impl Default for Ways {
    fn default() -> Self {
        Self { way: Way::Learned, began: None, looked: None, verdict: None }
    }
}

impl Ways {
    /// One look, while somebody is awake.
    pub(super) fn look(&mut self, gain: &Gain, now: Done) {
        let has_rested = self.looked.replace(now.at).is_some_and(|last| now.at - last > REST);
        let Some(began) = self.began.filter(|_| !has_rested) else {
            *self = Self { began: Some(now), looked: self.looked, ..Self::default() };
            return gain.spares_nobody(false);
        };
        let took = now.at - began.at;
        if took < WHILE {
            return;
        }
        let (events, sleeps) = (now.events - began.events, now.sleeps - began.sleeps);
        let rate = events as f64 / took.as_secs_f64();
        let is_busy = events >= BUSY[0] && events / BUSY[1] >= sleeps;
        let is_as_good = self.verdict.is_none_or(|verdict| rate >= verdict.least);
        let was_better = self.verdict.is_some_and(|verdict| verdict.lavish);
        let (next, lavish) = match self.way {
            Way::Learned if is_busy => (Way::Lavish { learned: rate }, true),
            Way::Lavish { learned } => self.keep(learned, rate),
            Way::Kept { left: left @ 2.. } if is_busy && is_as_good => {
                (Way::Kept { left: left - 1 }, was_better)
            }
            Way::Kept { .. } if was_better => (Way::Settling, false),
            Way::Learned | Way::Kept { .. } | Way::Settling => (Way::Learned, false),
        };
        (self.way, self.began) = (next, Some(now));
        gain.spares_nobody(lavish);
    }

    fn keep(&mut self, learned: f64, rate: f64) -> (Way, bool) {
        let lavish = rate > learned * BETTER;
        let same = self.verdict.filter(|verdict| verdict.lavish == lavish);
        let whiles = same.map_or(KEPT[0], |verdict| (2 * verdict.whiles).min(KEPT[1]));
        let least = if lavish { learned } else { learned / BETTER };
        self.verdict = Some(Verdict { lavish, whiles, least });
        (Way::Kept { left: whiles }, lavish)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    /// A pool, and what it gets done in a millisecond in either way.
    struct Pool {
        gain: Gain,
        ways: Ways,
        done: Done,
        learned: u64,
        lavish: u64,
        /// Of so many events one is slept for.
        sleeps_for: u64,
    }

    impl Pool {
        fn new(learned: u64, lavish: u64) -> Self {
            let gain = Gain::new(Duration::ZERO);
            let done = Done { at: Instant::now(), events: 0, sleeps: 0 };
            Self { gain, ways: Ways::default(), done, learned, lavish, sleeps_for: 1000 }
        }

        /// Runs for so many milliseconds; returns in how many of them nobody was spared.
        fn run(&mut self, millis: u32) -> usize {
            let mut run = |_: &u32| {
                self.ways.look(&self.gain, self.done);
                let lavish = self.gain.is_lavish();
                self.done.at += TICK;
                self.done.events += if lavish { self.lavish } else { self.learned };
                self.done.sleeps = self.done.events / self.sleeps_for;
                lavish
            };
            (0..millis).filter(&mut run).count()
        }
    }

    #[test]
    fn the_better_way_is_kept_and_the_other_one_tried_now_and_then() {
        for (lavish, share) in [(130, 0.95..0.99), (105, 0.01..0.04), (80, 0.01..0.04)] {
            let mut pool = Pool::new(100, lavish);
            let first = pool.run(1000);
            assert!((50..=900).contains(&first), "{lavish}, in the first second: {first}");
            let lavish_share = pool.run(20_000) as f64 / 20_000.0;
            assert!(share.contains(&lavish_share), "{lavish}: {lavish_share}");
        }
    }

    #[test]
    fn what_changes_is_found_out() {
        let mut pool = Pool::new(100, 130);
        pool.run(10_000);
        pool.lavish = 80;
        pool.run(3500);
        assert!(pool.run(1000) < 200);
        pool.lavish = 130;
        pool.run(3500);
        assert!(pool.run(1000) > 800);
    }

    #[test]
    fn who_is_not_busy_tries_nothing() {
        assert_eq!(Pool::new(1, 100).run(10_000), 0);
        let mut sleeps = Pool::new(100, 130);
        sleeps.sleeps_for = 7;
        assert_eq!(sleeps.run(10_000), 0);
    }

    #[test]
    fn after_a_rest_it_begins_anew() {
        let mut pool = Pool::new(100, 130);
        while !pool.gain.is_lavish() {
            pool.run(1);
        }
        pool.done.at += REST + TICK;
        assert_eq!(pool.run(50), 0);
        assert!(pool.run(100) > 0);
    }
}
