//! Virtual time. It stands still until somebody calls [`tick`]: a scenario's clock thread, which lets the others take
//! many steps between two ticks, and few where they all wait.
//!
//! Whoever waits for a deadline sets an [`Alarm`] on the condition variable that it waits on. A tick rings all that are
//! due, again at each tick until they are gone: so one that came between setting it and the wait is not lost. What is kept
//! here is std's and used within a step, so nobody ever waits for it.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::process_static;

/// How far a tick turns the clock: the deputy's default patience, so that it looks about once a tick.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// How much others do between two ticks.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Hardly ever more than there is to do: ticks go by while threads wait.
    Slow,
    /// Ticks come while threads are at work, too.
    Fast,
}

#[cfg(test)]
impl Speed {
    /// Times that the clock lets others go first between two ticks. A thread that can run takes about as many steps.
    fn turns(self) -> u32 {
        match self {
            Self::Slow => 600,
            Self::Fast => 100,
        }
    }

    /// Turns in a row in which nobody else did anything, after which everybody is taken to wait. One other thread that
    /// can run does nothing in half of them.
    fn quiet_turns(self) -> u32 {
        match self {
            Self::Slow => 14,
            Self::Fast => 6,
        }
    }
}

/// What a run begins with: some time has passed already, so that there is a past to subtract from.
const START: u64 = 3_600_000_000_000;

process_static! {
    static NOW: AtomicU64 = AtomicU64::new(START);
}

process_static! {
    static ALARMS: Mutex<Alarms> = Mutex::default();
}

#[derive(Debug, Default)]
struct Alarms {
    next: u64,
    set: Vec<(u64, Instant, Arc<shuttle::sync::Condvar>)>,
}

fn alarms() -> MutexGuard<'static, Alarms> {
    ALARMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rings a condition variable when its time has come, until it is dropped.
#[derive(Debug)]
pub(super) struct Alarm(u64);

impl Alarm {
    pub(super) fn set(at: Instant, bell: &Arc<shuttle::sync::Condvar>) -> Self {
        let mut alarms = alarms();
        alarms.next += 1;
        let number = alarms.next;
        alarms.set.push((number, at, bell.clone()));
        Self(number)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        alarms().set.retain(|(number, ..)| *number != self.0);
    }
}

/// Lets the other threads run for a while, then turns the clock.
#[cfg(test)]
pub(crate) fn tick(speed: Speed) {
    let_others_run(speed);
    NOW.fetch_add(TICK.as_nanos() as u64, Relaxed);
    let now = Instant::now();
    let due: Vec<_> =
        alarms().set.iter().filter(|(_, at, _)| *at <= now).map(|(.., bell)| bell.clone()).collect();
    due.iter().for_each(|bell| bell.notify_all());
}

#[cfg(test)]
fn let_others_run(speed: Speed) {
    let mut quiet = 0;
    for _ in 0..speed.turns() {
        let before = shuttle::current::context_switches();
        shuttle::thread::yield_now();
        let alone = shuttle::current::context_switches() == before + 1;
        quiet = if alone { quiet + 1 } else { 0 };
        if quiet == speed.quiet_turns() {
            return;
        }
    }
}

/// Parks the current thread until it is unparked or until `deadline`; false if that has passed.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    super::thread::wait_for_token(deadline)
}

/// A moment of a run. It has those of the methods of std's that the crate uses.
// Public, because it is what a `Timer` returns; the module is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(unreachable_pub)]
pub struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(Duration::from_nanos(NOW.load(Relaxed)))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    pub(crate) fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    pub(crate) fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) fn checked_add(&self, ahead: Duration) -> Option<Self> {
        self.0.checked_add(ahead).map(Self)
    }

    pub(crate) fn checked_sub(&self, back: Duration) -> Option<Self> {
        self.0.checked_sub(back).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, ahead: Duration) -> Self {
        Self(self.0 + ahead)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, ahead: Duration) {
        self.0 += ahead;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, back: Duration) -> Self {
        Self(self.0 - back)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, back: Duration) {
        self.0 -= back;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
