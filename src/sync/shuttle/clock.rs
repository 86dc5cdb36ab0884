//! Virtual time, which stands still until [`tick`] is called, by a scenario's clock thread. The clock thread
//! lets the others take many steps between two ticks, and few if they all wait.
//!
//! A thread that waits for a deadline sets an [`Alarm`] on the condition variable that it waits on. A tick
//! rings all alarms that are due, and rings them again at each tick until they are dropped: so a tick between
//! setting an alarm and waiting loses no ring. The state here is `std`'s and used within a step, so no thread
//! ever waits for it.
//!
//! In a [simulation](cores) no thread moves the clock: the time is that of the running thread, and the world
//! rings the alarms.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{cores, process_static};

/// The step of the clock: the deputy's default patience, so that it looks about once a tick.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// How much other threads do between two ticks.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Threads mostly finish all work between two ticks: ticks pass while threads wait.
    Slow,
    /// Ticks also pass while threads work.
    Fast,
}

#[cfg(test)]
impl Speed {
    /// Returns how often the clock yields to others between two ticks. A thread that can run takes about as
    /// many steps.
    fn turns(self) -> u32 {
        match self {
            Self::Slow => SLOW_TURNS,
            Self::Fast => 60,
        }
    }
}

/// Turns of the others between two ticks of a slow clock.
#[cfg(test)]
const SLOW_TURNS: u32 = 600;

/// After so many turns in a row without a step of another thread, all threads are taken to wait. If one other
/// thread can run, it takes no step in half of the turns.
#[cfg(test)]
const QUIET_TURNS: u32 = 24;

/// The time at which a run begins: some time has passed already, so that there is a past to subtract from.
pub(crate) const START: u64 = 3_600_000_000_000;

process_static! {
    static NOW: AtomicU64 = AtomicU64::new(START);
}

process_static! {
    /// The turns of all ticks. A tick at which all threads waited counts as [`SLOW_TURNS`].
    static TURNS: AtomicU64 = AtomicU64::new(0);
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

/// Rings a condition variable at each tick after its time, until it is dropped.
#[derive(Debug)]
pub(super) struct Alarm(u64);

impl Alarm {
    /// Has `bell` rung at each tick from `at` on.
    pub(super) fn set(at: Instant, bell: &Arc<shuttle::sync::Condvar>) -> Self {
        let mut alarms = alarms();
        alarms.next += 1;
        let number = alarms.next;
        alarms.set.push((number, at, bell.clone()));
        cores::wake_world_at(at.0.as_nanos() as u64);
        Self(number)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        alarms().set.retain(|(number, ..)| *number != self.0);
    }
}

/// Lets the other threads run for a while, then moves the clock on.
#[cfg(test)]
pub(crate) fn tick(speed: Speed) {
    TURNS.fetch_add(let_others_run(speed).into(), Relaxed);
    NOW.fetch_add(TICK.as_nanos() as u64, Relaxed);
    ring();
}

/// Rings the alarms that are due. Returns whether there are any.
#[cfg(test)]
pub(crate) fn ring() -> bool {
    let now = Instant::now();
    let due: Vec<_> =
        alarms().set.iter().filter(|(_, at, _)| *at <= now).map(|(.., bell)| bell.clone()).collect();
    due.iter().for_each(|bell| bell.notify_all());
    !due.is_empty()
}

/// Lets the other threads take as many turns as `speed` says, or until they all wait. Returns how many turns
/// they had, or [`SLOW_TURNS`] if they all wait.
#[cfg(test)]
fn let_others_run(speed: Speed) -> u32 {
    let mut quiet = 0;
    for _ in 0..speed.turns() {
        let before = shuttle::current::context_switches();
        shuttle::thread::yield_now();
        let alone = shuttle::current::context_switches() == before + 1;
        quiet = if alone { quiet + 1 } else { 0 };
        if quiet == QUIET_TURNS {
            return SLOW_TURNS;
        }
    }
    speed.turns()
}

/// A moment of a run, for measuring how long threads waited. While threads take steps, a fast clock advances
/// by several ticks in the time of one tick of a slow clock; here these count as one.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowTicks(u64);

#[cfg(test)]
impl SlowTicks {
    pub(crate) fn now() -> Self {
        Self(TURNS.load(Relaxed))
    }

    pub(crate) fn elapsed(self) -> u64 {
        (TURNS.load(Relaxed) - self.0) / u64::from(SLOW_TURNS)
    }
}

/// Returns the virtual time; in a simulation that of the thread.
fn nanos() -> u64 {
    cores::now().unwrap_or_else(|| NOW.load(Relaxed))
}

/// Returns the virtual time in milliseconds.
pub(crate) fn coarse_millis() -> u64 {
    nanos() / 1_000_000
}

/// Parks the current thread until it is unparked or until `deadline`. Returns true if it was unparked, false
/// if the deadline has passed.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    super::thread::wait_for_token(deadline)
}

/// A moment of a run, with the methods of `std`'s that the crate uses.
// Public, because a `Timer` returns it; the module is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(unreachable_pub)]
pub struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        cores::charge(|costs| costs.clock);
        Self(Duration::from_nanos(nanos()))
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
