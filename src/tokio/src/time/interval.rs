//! [`Interval`]: a tick each period, and the handling of missed ticks.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{Duration, Instant, LONGEST, Sleep, sleep_until};

/// A tick that is later than this was missed.
const LATE: Duration = Duration::from_millis(5);

#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert_not_zero(period);
    starting(Instant::now(), period)
}

#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert_not_zero(period);
    starting(start, period)
}

#[track_caller]
fn assert_not_zero(period: Duration) {
    assert!(!period.is_zero(), "`period` must be non-zero.");
}

#[track_caller]
fn starting(start: Instant, period: Duration) -> Interval {
    let missed_tick_behavior = MissedTickBehavior::default();
    Interval { delay: Box::pin(sleep_until(start)), period: period.min(LONGEST), missed_tick_behavior }
}

/// When the next tick is due, after a late one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// At its original time: all missed ticks come at once.
    #[default]
    Burst,
    /// A period from now.
    Delay,
    /// At the next multiple of the period.
    Skip,
}

impl MissedTickBehavior {
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => due + period,
            Self::Delay => now + period,
            Self::Skip => {
                let over = (now - due).as_nanos() % period.as_nanos();
                // Less than a period, which is less than thirty years.
                let over = u64::try_from(over).expect("thirty years are fewer nanoseconds");
                now + (period - Duration::from_nanos(over))
            }
        }
    }
}

/// Ticks each period.
#[derive(Debug)]
pub struct Interval {
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

impl Interval {
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.delay.as_mut().poll(cx));
        let (due, now) = (self.delay.deadline(), Instant::now());
        let next = if now > due + LATE {
            self.missed_tick_behavior.next(due, now, self.period)
        } else {
            due + self.period
        };
        self.delay.as_mut().renew(next, now);
        Poll::Ready(due)
    }

    pub fn reset(&mut self) {
        self.reset_at(Instant::now() + self.period);
    }

    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(Instant::now() + after.min(LONGEST));
    }

    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    pub fn period(&self) -> Duration {
        self.period
    }
}
