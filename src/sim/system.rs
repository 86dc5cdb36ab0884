//! [`SystemValues`]: what a program in a simulation gets from the operating system's clocks and random
//! numbers, if it has [`sim_libc!`](crate::sim_libc!).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::rng::Rng;

/// The monotonic clock at the start of a simulation. It is the same in each run, because programs may hash
/// or print an `Instant`; and not zero, because they may subtract from it.
const MONOTONIC_START: Duration = Duration::from_secs(3600);

/// The wall clock of each node at the start of a simulation: the beginning of the year 2026, in UTC.
const WALL_START: Duration = Duration::from_secs(1_767_225_600);

/// The values that the simulation's thread sees now. They are stored here whenever the virtual time or the
/// node changes, so that the functions that return them need no lock. Only that thread uses them.
#[derive(Debug)]
pub(super) struct SystemValues {
    /// A counter: each random number is a hash of it.
    random: AtomicU64,
    /// Nanoseconds.
    monotonic: AtomicU64,
    /// Nanoseconds since 1970.
    wall: AtomicU64,
}

/// By how many nanoseconds a wall clock is ahead of one that was never set.
pub(super) type WallOffset = i64;

impl SystemValues {
    pub(super) fn new(seed: u64) -> Self {
        let [monotonic, wall] = [MONOTONIC_START, WALL_START].map(|start| AtomicU64::new(nanos(start)));
        Self { random: AtomicU64::new(seed), monotonic, wall }
    }

    /// Sets the clocks to a time since the start, on a node whose wall clock has that offset.
    pub(super) fn set(&self, elapsed: Duration, offset: WallOffset) {
        self.monotonic.store(nanos(MONOTONIC_START.saturating_add(elapsed)), Ordering::Relaxed);
        self.wall.store(nanos(wall_clock(elapsed, offset)), Ordering::Relaxed);
    }

    pub(super) fn random(&self) -> u64 {
        Rng::new(self.random.fetch_add(1, Ordering::Relaxed)).next_u64()
    }

    pub(super) fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.monotonic.load(Ordering::Relaxed))
    }

    pub(super) fn wall(&self) -> Duration {
        Duration::from_nanos(self.wall.load(Ordering::Relaxed))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns what a wall clock with that offset shows, so long after the start of the simulation.
pub(super) fn wall_clock(elapsed: Duration, offset: WallOffset) -> Duration {
    let unset = WALL_START.saturating_add(elapsed);
    let by = Duration::from_nanos(offset.unsigned_abs());
    if offset < 0 { unset.saturating_sub(by) } else { unset.saturating_add(by) }
}

/// Returns the offset of a clock that shows `wall`. `None` if that is before 1970, or more than 292 years
/// away.
pub(super) fn offset_of(wall: SystemTime, elapsed: Duration) -> Option<WallOffset> {
    let wall = wall.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos() as i128;
    (wall - wall_clock(elapsed, 0).as_nanos() as i128).try_into().ok()
}
