//! [`Rounded`]: a duration for people to read, with two or three digits.

use std::fmt;
use std::time::Duration;

/// Displays a duration with two or three digits, in the unit that fits: "10.9ms", "350ms", "1.5s", "12.0min".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded(pub(crate) Duration);

/// Each unit: the number of seconds from which on it is used, its length in seconds, and its symbol.
const UNITS: [(f64, f64, &str); 6] = [
    (172_800.0, 86_400.0, "d"),
    (7_200.0, 3_600.0, "h"),
    (120.0, 60.0, "min"),
    (1.0, 1.0, "s"),
    (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"),
];

impl fmt::Display for Rounded {
    /// Writes the number and its unit without a space, padded as the format asks: a number below 100 with
    /// one digit after the point, a greater number without one. Nanoseconds have no digit after the point.
    /// A number of days, or one that is rounded up to the next unit, may have more than three digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let text = match UNITS.iter().find(|(from, ..)| seconds >= *from) {
            None => format!("{}ns", self.0.as_nanos()),
            Some((_, length, unit)) => {
                let value = seconds / length;
                // From here on, a digit after the point would be the fourth.
                let digits = usize::from(value < 99.95);
                format!("{value:.digits$}{unit}")
            }
        };
        f.pad(&text)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn two_or_three_digits_and_a_unit() {
        let cases = [
            (0, "0ns"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (10_265_191, "10.3ms"),
            (99_960_000, "100ms"),
            (349_600_000, "350ms"),
            (1_000_000_000, "1.0s"),
            (119_000_000_000, "119s"),
            (120_000_000_000, "2.0min"),
            (7_200_000_000_000, "2.0h"),
            (259_200_000_000_000, "3.0d"),
        ];
        for (nanos, text) in cases {
            assert_eq!(Rounded(Duration::from_nanos(nanos)).to_string(), text);
        }
        assert_eq!(format!("{:>7}|", Rounded(Duration::from_millis(12))), " 12.0ms|");
    }
}
