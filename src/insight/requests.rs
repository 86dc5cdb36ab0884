//! The environment variable `PACELINE_REPORT`: names of reports, separated by commas, that every runtime of
//! the process prints on standard error.

use std::env;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::notice;

/// The names, and their bits in [`REQUESTED_REPORTS`].
const REPORT_NAMES: [(&str, u8); 1] = [("stalls", STALLS)];
const STALLS: u8 = 1;
/// The variable has been read.
const KNOWN: u8 = 128;

/// The requested reports. An atomic of std in all modes: it orders nothing.
static REQUESTED_REPORTS: AtomicU8 = AtomicU8::new(0);

/// Returns the bits of the requested reports, and always `KNOWN`: never zero. The first call reads
/// `PACELINE_REPORT`, and prints a line on standard error for each name that does not exist.
pub(crate) fn read() -> u8 {
    // ORDER: Relaxed: the word publishes no other memory.
    match REQUESTED_REPORTS.load(Ordering::Relaxed) {
        0 => read_environment(),
        requested => requested,
    }
}

pub(crate) fn are_stalls_requested() -> bool {
    read() & STALLS != 0
}

/// Reads the variable and stores the requests. Prints a line for each name that does not exist, unless
/// another thread was first.
#[cold]
fn read_environment() -> u8 {
    let text = env::var_os("PACELINE_REPORT").unwrap_or_default();
    let (requested, unknown) = parse(&text.to_string_lossy());
    let requested = requested | KNOWN;
    if REQUESTED_REPORTS.compare_exchange(0, requested, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        for name in unknown {
            let names = REPORT_NAMES.map(|(name, _)| name).join(", ");
            notice::print(format_args!(
                "PACELINE_REPORT names {name:?}, which is no report; there is: {names}"
            ));
        }
    }
    requested
}

/// Returns the bits of the names that exist, and the names that do not. Commas separate the names in `text`.
fn parse(text: &str) -> (u8, Vec<String>) {
    let (mut requested, mut unknown) = (0, Vec::new());
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match REPORT_NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, bit)) => requested |= bit,
            None => unknown.push(name.into()),
        }
    }
    (requested, unknown)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        assert_eq!(parse(""), (0, vec![]));
        assert_eq!(parse("stalls"), (STALLS, vec![]));
        assert_eq!(parse(" stalls ,, "), (STALLS, vec![]));
        assert_eq!(parse("stall,stalls,Stalls"), (STALLS, vec!["stall".into(), "Stalls".into()]));
    }
}
