//! How often a server's threads contend: counted in a build with `--cfg paceline_contention`.

use std::io;

/// Whether this build, and so every paceline server that it starts, counts contention.
pub(crate) const COUNTED: bool = cfg!(all(feature = "paceline", paceline_contention));

/// The counts since the server's start, in a window, or per request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Contention {
    pub(crate) failed_swaps: f64,
    pub(crate) contended_locks: f64,
    pub(crate) lock_wait_nanos: f64,
    pub(crate) leaderships: f64,
    /// The processor time of leaders.
    pub(crate) led_nanos: f64,
    /// The cost of two readings of the clock, always the same.
    pub(crate) clock_nanos: f64,
}

impl Contention {
    /// Parses the line that the server prints: the numbers in this order.
    pub(crate) fn read(line: &str) -> io::Result<Contention> {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [failed_swaps, contended_locks, lock_wait_nanos, leaderships, led_nanos, clock_nanos] =
            numbers[..]
        else {
            return Err(io::Error::other(format!("no contention counts in a server's answer: {line:?}")));
        };
        Ok(Contention { failed_swaps, contended_locks, lock_wait_nanos, leaderships, led_nanos, clock_nanos })
    }

    pub(crate) fn since(self, earlier: Contention) -> Contention {
        self.with(|count, of| count - of(&earlier))
    }

    pub(crate) fn per(self, requests: f64) -> Contention {
        self.with(|count, _| count / requests)
    }

    /// Changes each count; `change` also gets the function that reads the same count of another value.
    fn with(self, change: impl Fn(f64, fn(&Contention) -> f64) -> f64) -> Contention {
        Contention {
            failed_swaps: change(self.failed_swaps, |of| of.failed_swaps),
            contended_locks: change(self.contended_locks, |of| of.contended_locks),
            lock_wait_nanos: change(self.lock_wait_nanos, |of| of.lock_wait_nanos),
            leaderships: change(self.leaderships, |of| of.leaderships),
            led_nanos: change(self.led_nanos, |of| of.led_nanos),
            clock_nanos: self.clock_nanos,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readings_make_a_figure_per_request() {
        let [before, after] =
            ["10 2 300 4 50 600", "60 12 1300 204 5050 600\n"].map(|line| Contention::read(line).unwrap());
        let figure = after.since(before).per(100.0);
        let expected = Contention {
            failed_swaps: 0.5,
            contended_locks: 0.1,
            lock_wait_nanos: 10.0,
            leaderships: 2.0,
            led_nanos: 50.0,
            clock_nanos: 600.0,
        };
        assert_eq!(figure, expected);
    }

    #[test]
    fn a_server_that_says_something_else_is_an_error() {
        assert!(["", "1 2", "1 2 3 4 5 six"].iter().all(|line| Contention::read(line).is_err()));
    }
}
