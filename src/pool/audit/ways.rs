//! [`Ways`]: whether a pool that is busy all the time gets more done when no worker is spared.
//!
//! [`Gain`] learns whether a wake was worth its way, as far as those two threads can see. They do not see what a thread is worth by
//! being there: where other programs want the cores as well, a pool of which one thread runs gets one share of them, one of which two
//! run gets two, and while the one has no core the other may have. Nor do they see what it takes from those whom the pool serves. So the
//! deputy, which looks once a tick anyway, tries both ways and keeps to the one in which more events are processed.
//!
//! | way | ends after | next |
//! |---|---|---|
//! | *learned*: wakes are as rare as they paid | a [`WHILE`] | *lavish*, if nobody idled; else *learned* |
//! | *lavish*: each event wakes somebody, if nobody is on his way | a [`WHILE`] | *kept* |
//! | *kept*: the better of the two | some whiles, twice as many each time that it is the same; sooner if there is less to do | *learned*; from *lavish*, *settling* first |
//! | *settling*: learned, but it does not count how | a [`WHILE`] | *learned* |
//!
//! After a [`REST`] it begins anew, and a leader that sleeps for long spares the others at once, without the deputy. Who has the
//! deputy look less often than that leaves it at what was learned.

use std::time::Duration;

use crate::gain::Gain;
use crate::sync::Instant;

/// How long a way is tried: long beside the slices of time in which cores are given to other programs.
const WHILE: Duration = Duration::from_millis(100);
/// For how many whiles the better one is kept, at first and at most.
const KEPT: [u32; 2] = [4, 128];
/// By how much the lavish one, which costs switches, has to be better.
const BETTER: f64 = 1.1;
/// Events in a while of a pool that is busy: fewer say too little.
const BUSY: u64 = 2000;
/// Nobody idles where leaders sleep once in so many events at most, and are awake without work for one part in so many of the time.
const IDLE: u32 = 8;
/// Who was not looked at for so long had nothing to do.
const REST: Duration = Duration::from_millis(100);

/// How much had been done at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) at: Instant,
    pub(super) events: u64,
    pub(super) sleeps: u64,
    /// How long leaders had been awake without work.
    pub(super) spun: Duration,
}

/// Rates are events a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Way {
    #[default]
    Learned,
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
    /// Less than that, and it would not have been.
    least: f64,
}

/// What is tried right now, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Ways {
    way: Way,
    began: Option<Done>,
    looked: Option<Instant>,
    verdict: Option<Verdict>,
}

impl Ways {
    /// One look, while somebody is awake.
    pub(super) fn look(&mut self, gain: &Gain, now: Done) {
        let began = self.began.filter(|_| !self.has_rested(now.at));
        self.looked = Some(now.at);
        match began {
            None => *self = Self { began: Some(now), looked: self.looked, ..Self::default() },
            Some(began) if now.at - began.at >= WHILE => self.next(began, now),
            Some(_) => {}
        }
        gain.set_lavish(self.is_lavish());
    }

    /// One look, while all sleep.
    pub(super) fn look_at_sleepers(&mut self, gain: &Gain, now: Instant) {
        if self.has_rested(now) {
            *self = Self::default();
            gain.set_lavish(false);
        }
    }

    fn has_rested(&self, now: Instant) -> bool {
        self.looked.is_some_and(|last| now - last > REST)
    }

    fn is_lavish(&self) -> bool {
        let was_better = self.verdict.is_some_and(|verdict| verdict.lavish);
        matches!(self.way, Way::Lavish { .. }) || was_better && matches!(self.way, Way::Kept { .. })
    }

    fn next(&mut self, began: Done, now: Done) {
        let took = now.at - began.at;
        let events = now.events.saturating_sub(began.events);
        let rate = events as f64 / took.as_secs_f64();
        let idles =
            (now.sleeps - began.sleeps) * u64::from(IDLE) > events || (now.spun - began.spun) * IDLE > took;
        let is_as_good = self.verdict.is_none_or(|verdict| rate >= verdict.least);
        self.began = Some(now);
        self.way = match self.way {
            Way::Learned if events >= BUSY && !idles => Way::Lavish { learned: rate },
            Way::Lavish { learned } => self.judge(learned, rate),
            Way::Kept { left: left @ 2.. } if events >= BUSY && is_as_good => Way::Kept { left: left - 1 },
            Way::Kept { .. } if self.is_lavish() => Way::Settling,
            Way::Learned | Way::Kept { .. } | Way::Settling => Way::Learned,
        };
    }

    fn judge(&mut self, learned: f64, rate: f64) -> Way {
        let lavish = rate > learned * BETTER;
        let same = self.verdict.filter(|verdict| verdict.lavish == lavish);
        let whiles = same.map_or(KEPT[0], |verdict| (2 * verdict.whiles).min(KEPT[1]));
        // That the learned way gets worse says nothing for the other one.
        let least = if lavish { learned } else { 0.0 };
        self.verdict = Some(Verdict { lavish, whiles, least });
        Way::Kept { left: whiles }
    }
}

// Not for miri: they run for minutes there.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
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
        /// Awake without work, of each millisecond.
        spins: Duration,
    }

    impl Pool {
        fn new(learned: u64, lavish: u64) -> Self {
            let gain = Gain::new(Duration::ZERO);
            let done = Done { at: Instant::now(), events: 0, sleeps: 0, spun: Duration::ZERO };
            Self {
                gain,
                ways: Ways::default(),
                done,
                learned,
                lavish,
                sleeps_for: 1000,
                spins: Duration::ZERO,
            }
        }

        /// One that tries the lavish way.
        fn that_is_lavish() -> Self {
            let mut pool = Self::new(100, 130);
            while !pool.gain.is_lavish() {
                pool.run(1);
            }
            pool
        }

        /// Runs for so many milliseconds; returns in how many of them nobody was spared.
        fn run(&mut self, millis: u32) -> usize {
            let mut run = |_: &u32| {
                self.ways.look(&self.gain, self.done);
                let lavish = self.gain.is_lavish();
                self.done.at += TICK;
                self.done.events += if lavish { self.lavish } else { self.learned };
                self.done.sleeps = self.done.events / self.sleeps_for;
                self.done.spun += self.spins;
                lavish
            };
            (0..millis).filter(&mut run).count()
        }
    }

    #[test]
    fn the_better_way_is_kept_and_the_other_one_tried_now_and_then() {
        // In milliseconds, of 20 000 after the first 20 000: a while of settling and one of what was learned for each verdict.
        for (lavish, share) in [(130, 0.97..0.99), (105, 0.003..0.02), (80, 0.003..0.02)] {
            let mut pool = Pool::new(100, lavish);
            let first = pool.run(1000);
            assert!((100..=900).contains(&first), "{lavish}, in the first second: {first}");
            pool.run(20_000);
            let lavish_share = pool.run(20_000) as f64 / 20_000.0;
            assert!(share.contains(&lavish_share), "{lavish}: {lavish_share}");
        }
    }

    #[test]
    fn what_changes_is_found_out() {
        let mut pool = Pool::new(100, 130);
        pool.run(10_000);
        pool.lavish = 80;
        pool.run(300);
        assert!(pool.run(1000) < 300);
        pool.lavish = 130;
        pool.run(30_000);
        assert!(pool.run(1000) > 700);
        // There is less to do.
        (pool.learned, pool.lavish) = (10, 10);
        pool.run(200);
        assert_eq!(pool.run(1000), 0);
    }

    #[test]
    fn who_is_not_busy_tries_nothing() {
        assert_eq!(Pool::new(1, 100).run(10_000), 0);
        let mut sleeps = Pool::new(100, 130);
        sleeps.sleeps_for = 7;
        assert_eq!(sleeps.run(10_000), 0);
        let mut spins = Pool::new(100, 130);
        spins.spins = Duration::from_micros(130);
        assert_eq!(spins.run(10_000), 0);
    }

    #[test]
    fn after_a_rest_it_begins_anew() {
        let mut pool = Pool::that_is_lavish();
        pool.done.at += REST + TICK;
        assert_eq!(pool.run(100), 0);
        assert!(pool.run(100) > 0);
    }

    #[test]
    fn what_profits_from_the_lavish_way_for_a_moment_more_is_not_taken_for_the_learned_one() {
        let mut pool = Pool::new(100, 115);
        pool.run(20_000);
        for _ in 0..20_000 {
            // For 90 ms after it, the learned way does as well.
            let was_lavish = pool.gain.is_lavish();
            pool.run(1);
            if was_lavish && !pool.gain.is_lavish() {
                pool.learned = 115;
                pool.run(90);
                pool.learned = 100;
            }
        }
        assert!(pool.run(10_000) > 9_000);
    }

    #[test]
    fn who_sleeps_is_lavish_no_more_after_a_rest() {
        let mut pool = Pool::that_is_lavish();
        pool.ways.look_at_sleepers(&pool.gain, pool.done.at);
        assert!(pool.gain.is_lavish(), "all may sleep for a moment");
        pool.ways.look_at_sleepers(&pool.gain, pool.done.at + REST + TICK);
        assert!(!pool.gain.is_lavish());
    }
}
