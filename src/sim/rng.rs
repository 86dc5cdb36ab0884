//! [`Rng`]: reproducible random numbers.

/// A generator of reproducible random numbers: SplitMix64. Not for secrets.
///
/// ```
/// use paceline::sim::Rng;
///
/// let (mut one, mut same) = (Rng::new(7), Rng::new(7));
/// assert_eq!(one.next_u64(), same.next_u64());
/// assert!(one.below(6) < 6);
/// assert!(one.chance(1.0) && !one.chance(0.0));
/// ```
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns the generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`. The numbers are equally likely, up to one part in 2^64 / `bound`.
    ///
    /// # Panics
    ///
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number from 0 on, below 1.
    pub(super) fn fraction(&mut self) -> f64 {
        const MANTISSA: u32 = 53;
        (self.next_u64() >> (u64::BITS - MANTISSA)) as f64 / (1u64 << MANTISSA) as f64
    }

    /// Returns true with this probability: never for 0, and always for 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs of SplitMix64 for the seed 1234567, from its reference implementation.
        let mut rng = Rng::new(1_234_567);
        let first = [(); 3].map(|()| rng.next_u64());
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn all_numbers_below_a_bound_come_about_equally_often() {
        let (mut rng, mut counts) = (Rng::new(1), [0u32; 7]);
        (0..7_000).for_each(|_| counts[rng.below(7) as usize] += 1);
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
    }
}
