//! The environment variable `PACELINE_REPORT`: names of reports, separated by commas, that every runtime of
//! the process prints on standard error. There is one so far: `stalls`. Other names have no effect.

use std::env;
use std::sync::OnceLock;

/// Returns whether stalls are to be printed. The first call reads the variable.
pub(crate) fn are_stalls_requested() -> bool {
    /// A cell of std in all modes: it is no step of a protocol.
    static STALLS: OnceLock<bool> = OnceLock::new();
    *STALLS.get_or_init(|| env::var("PACELINE_REPORT").is_ok_and(|names| has_stalls(&names)))
}

/// Returns whether stalls are among the names, which commas separate.
fn has_stalls(names: &str) -> bool {
    names.split(',').any(|name| name.trim() == "stalls")
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        let requested = ["stalls", " stalls ,, ", "stall,stalls,Stalls"];
        assert!(requested.into_iter().all(has_stalls));
        assert!(!["", "stall", "Stalls", "stalls stalls"].into_iter().any(has_stalls));
    }
}
