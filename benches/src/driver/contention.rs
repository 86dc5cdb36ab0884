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
}

impl Contention {
    /// Parses the line that the server prints: the three numbers in this order.
    pub(crate) fn read(line: &str) -> io::Result<Contention> {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [failed_swaps, contended_locks, lock_wait_nanos] = numbers[..] else {
            return Err(io::Error::other(format!("no contention counts in a server's answer: {line:?}")));
        };
        Ok(Contention { failed_swaps, contended_locks, lock_wait_nanos })
    }

    pub(crate) fn since(self, earlier: Contention) -> Contention {
        Contention {
            failed_swaps: self.failed_swaps - earlier.failed_swaps,
            contended_locks: self.contended_locks - earlier.contended_locks,
            lock_wait_nanos: self.lock_wait_nanos - earlier.lock_wait_nanos,
        }
    }

    pub(crate) fn per(self, requests: f64) -> Contention {
        Contention {
            failed_swaps: self.failed_swaps / requests,
            contended_locks: self.contended_locks / requests,
            lock_wait_nanos: self.lock_wait_nanos / requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readings_make_a_figure_per_request() {
        let [before, after] = ["10 2 300", "60 12 1300\n"].map(|line| Contention::read(line).unwrap());
        let figure = after.since(before).per(100.0);
        let expected = Contention { failed_swaps: 0.5, contended_locks: 0.1, lock_wait_nanos: 10.0 };
        assert_eq!(figure, expected);
    }

    #[test]
    fn a_server_that_says_something_else_is_an_error() {
        assert!(["", "1 2", "1 2 three"].iter().all(|line| Contention::read(line).is_err()));
    }
}
