//! Random numbers for tests, the same for the same seed.

use std::env::var;

/// A generator (xorshift64*), and its seed to repeat a run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds should differ, and zero stays zero.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number less than `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 32) as usize) % end
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Runs a test with many seeds: `rounds` of them, or as many as `MUX_ROUNDS` says, from `MUX_SEED` on. Prints
/// the seed of a failure.
pub(crate) fn rounds(rounds: u64, test: impl Fn(&mut Random)) {
    struct Tell(u64);
    impl Drop for Tell {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("it failed with MUX_SEED={} MUX_ROUNDS=1", self.0);
            }
        }
    }
    let number = |name| var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("MUX_SEED").unwrap_or(0);
    for seed in first..first + number("MUX_ROUNDS").unwrap_or(rounds) {
        let _tell = Tell(seed);
        test(&mut Random::new(seed));
    }
}
