//! Counts of the times of echoes, in constant memory for any number.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The width of a range is at most a sixteenth of its times, and at least a nanosecond.
const PARTS: usize = 16;
/// The last range ends with the longest time.
const RANGES: usize = 61 * PARTS;

/// How many times fell into each range.
pub struct Times([AtomicU64; RANGES]);

impl Times {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; RANGES])
    }

    pub fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // The four bits behind the highest one select the part; the bits behind them do not count.
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(1 + PARTS.ilog2());
        self.0[PARTS * shift as usize + (nanos >> shift) as usize].fetch_add(1, Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.load(Relaxed)).sum()
    }

    /// Returns the time that so many percent did not exceed: the end of a range.
    pub fn percentile(&self, percent: u64) -> Duration {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut passed = 0;
        let range = self.0.iter().position(|range| {
            passed += range.load(Relaxed);
            passed >= wanted
        });
        let range = range.unwrap_or(RANGES - 1);
        let shift = (range / PARTS).saturating_sub(1);
        let (begin, width) = (((range - PARTS * shift) as u64) << shift, 1 << shift);
        Duration::from_nanos(begin + (width - 1))
    }
}
