//! How long echoes took: counts of them, in as much memory for a billion as for one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A range of times is a sixteenth as wide as they are long, at most; and a nanosecond at least.
const PARTS: usize = 16;
/// The last one ends with the last time that there is.
const RANGES: usize = 61 * PARTS;

/// So many took a time of each range.
pub struct Times([AtomicU64; RANGES]);

impl Times {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; RANGES])
    }

    pub fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // The four bits behind the first one say which part it is, the bits behind them do not count.
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(1 + PARTS.ilog2());
        self.0[PARTS * shift as usize + (nanos >> shift) as usize].fetch_add(1, Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.load(Relaxed)).sum()
    }

    /// So many in a hundred took no longer than this: the end of a range.
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
