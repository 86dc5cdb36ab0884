//! Medians and how far the samples around them lie.

use serde_json::{Value, json};

/// A median with its quartiles.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Half of the samples are below.
    pub median: f64,
    /// A quarter of the samples are below.
    pub lower: f64,
    /// A quarter of the samples are above.
    pub upper: f64,
}

impl Spread {
    /// Half of the distance between the quartiles, in percent of the median.
    pub fn percent(self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.upper - self.lower) / 2.0 / self.median * 100.0 }
    }

    /// Returns the spread as it appears in the raw figures.
    pub fn to_json(self) -> Value {
        json!({ "median": self.median, "lower": self.lower, "upper": self.upper })
    }
}

/// Returns `None` if there are no samples.
pub fn spread(samples: &[f64]) -> Option<Spread> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        below + (above - below) * place.fract()
    };
    Some(Spread { median: at(0.5), lower: at(0.25), upper: at(0.75) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let spread = spread(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.lower, spread.median, spread.upper), (1.75, 2.5, 3.25));
    }

    #[test]
    fn no_samples_have_no_median() {
        assert!(spread(&[]).is_none());
    }
}
