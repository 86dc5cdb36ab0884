//! [`Waits`]: how long the waits of one kind took, and whether one is in progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Buckets for durations in nanoseconds: exact below 16, then 16 for each power of two.
const BUCKETS: usize = 16 * 61;

/// The time and the phase of a scene, for all of its waits.
pub(crate) struct Clock {
    pub(crate) origin: Instant,
    /// Whether waits that end now count.
    pub(crate) is_measuring: AtomicBool,
    /// Whether no further wait begins.
    pub(crate) is_over: AtomicBool,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            origin: Instant::now(),
            is_measuring: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }
}

/// The waits of one kind, of which one at a time is in progress.
pub(crate) struct Waits {
    clock: &'static Clock,
    /// When the wait in progress began, in nanoseconds after the origin and one; 0 if there is none.
    since: AtomicU64,
    /// The number of waits that have ended, those that do not count included.
    ended: AtomicU64,
    longest: AtomicU64,
    buckets: Box<[AtomicU64]>,
}

impl Waits {
    pub(crate) fn new(clock: &'static Clock) -> Waits {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        let zero = || AtomicU64::new(0);
        Waits { clock, since: zero(), ended: zero(), longest: zero(), buckets }
    }

    /// Begins a wait, at a time that may be in the future. Returns false if the scene is over.
    pub(crate) fn begin(&self, from: Instant) -> bool {
        let since = from.saturating_duration_since(self.clock.origin).as_nanos() as u64 + 1;
        // ORDER: sequentially consistent, as the flag is, which is set before `age` reads `since`: either
        // this call sees that the scene is over, or the reader sees the wait.
        self.since.store(since, SeqCst);
        let is_over = self.clock.is_over.load(SeqCst);
        if is_over {
            self.since.store(0, SeqCst);
        }
        !is_over
    }

    /// Ends the wait that began at that time, and returns the time.
    pub(crate) fn end(&self, from: Instant) -> Instant {
        let now = Instant::now();
        if self.clock.is_measuring.load(SeqCst) {
            let nanos = now.saturating_duration_since(from).as_nanos() as u64;
            self.longest.fetch_max(nanos, SeqCst);
            self.buckets[bucket(nanos)].fetch_add(1, SeqCst);
        }
        self.ended.fetch_add(1, SeqCst);
        self.since.store(0, SeqCst);
        now
    }

    /// Returns how long the wait in progress takes so far, if there is one.
    pub(crate) fn age(&self) -> Option<Duration> {
        let since = self.since.load(SeqCst).checked_sub(1)?;
        Some(self.clock.origin.elapsed().saturating_sub(Duration::from_nanos(since)))
    }

    /// Returns whether a wait has ended, even if it does not count.
    pub(crate) fn is_running(&self) -> bool {
        self.ended.load(SeqCst) > 0
    }
}

/// The waits of one kind, from one or several tasks.
pub(crate) struct Summary {
    /// Includes waits in progress.
    pub(crate) longest: Duration,
    /// Rounded down, by a sixteenth at most.
    pub(crate) median: Duration,
    pub(crate) count: u64,
    /// Whether no wait is in progress.
    pub(crate) is_ended: bool,
}

impl Summary {
    pub(crate) fn of(all: &[Waits]) -> Summary {
        let counts: Vec<u64> =
            (0..BUCKETS).map(|at| all.iter().map(|waits| waits.buckets[at].load(SeqCst)).sum()).collect();
        let ages = all.iter().filter_map(Waits::age);
        let ended = all.iter().map(|waits| Duration::from_nanos(waits.longest.load(SeqCst)));
        let is_ended = all.iter().all(|waits| waits.age().is_none());
        let longest = ended.chain(ages).max().unwrap_or_default();
        Summary { longest, median: median(&counts), count: counts.iter().sum(), is_ended }
    }
}

/// Returns the bucket of a duration.
fn bucket(nanos: u64) -> usize {
    if nanos < 16 {
        return nanos as usize;
    }
    let power = 63 - nanos.leading_zeros() as usize;
    (power - 3) * 16 + (nanos >> (power - 4)) as usize % 16
}

/// Returns the shortest duration of a bucket, in nanoseconds.
fn shortest(bucket: usize) -> u64 {
    if bucket < 16 { bucket as u64 } else { (16 + bucket as u64 % 16) << (bucket / 16 - 1) }
}

fn median(counts: &[u64]) -> Duration {
    let half = counts.iter().sum::<u64>() / 2;
    let mut below = 0;
    let at = counts.iter().position(|count| {
        below += count;
        below > half
    });
    Duration::from_nanos(at.map_or(0, shortest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits() -> (&'static Clock, Waits) {
        let clock: &Clock = Box::leak(Box::new(Clock::start()));
        clock.is_measuring.store(true, SeqCst);
        (clock, Waits::new(clock))
    }

    #[test]
    fn a_bucket_is_wrong_by_a_sixteenth_at_most() {
        let powers = (0..64).map(|power| 1_u64 << power);
        for nanos in (0..5_000).chain(powers.flat_map(|power| [power - 1, power, power + power / 3])) {
            let shortest = shortest(bucket(nanos));
            assert!(shortest <= nanos && nanos - shortest <= nanos / 16, "{shortest} for {nanos}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_median_is_that_of_all_waits() {
        let (_, waits) = waits();
        for nanos in [1, 3, 5, 7, 1 << 40] {
            waits.buckets[bucket(nanos)].fetch_add(1, SeqCst);
        }
        assert_eq!(Summary::of(&[waits]).median, Duration::from_nanos(5));
        assert_eq!(median(&[0; BUCKETS]), Duration::ZERO);
    }

    #[test]
    fn a_wait_in_progress_counts_as_the_longest() {
        let (_, waits) = waits();
        let hour = Duration::from_secs(3_600);
        let Some(long_ago) = waits.clock.origin.checked_sub(hour) else { return };
        waits.end(long_ago);
        let all = [waits];
        assert!(Summary::of(&all).is_ended && Summary::of(&all).longest >= hour);
        assert!(all[0].begin(Instant::now()));
        assert!(!Summary::of(&all).is_ended && all[0].age().is_some());
    }

    #[test]
    fn what_ends_before_the_window_does_not_count() {
        let (clock, waits) = waits();
        clock.is_measuring.store(false, SeqCst);
        waits.end(Instant::now());
        assert!(waits.is_running());
        assert_eq!(Summary::of(&[waits]).count, 0);
    }

    #[test]
    fn no_wait_begins_when_the_scene_is_over() {
        let (clock, waits) = waits();
        assert!(waits.begin(Instant::now()));
        clock.is_over.store(true, SeqCst);
        assert!(waits.age().is_some(), "a wait in progress goes on");
        waits.end(Instant::now());
        assert!(!waits.begin(Instant::now()) && waits.age().is_none());
    }
}
