//! The environment variable `PACELINE_REPORT`: names of reports, separated by commas, that every runtime of
//! the process prints on standard error. There is one so far: `stalls`.

use std::env;
use std::sync::OnceLock;

use crate::notice;

/// Whether stalls are to be printed, once the variable has been read. A cell of std in all modes: it is no
/// step of a protocol.
static STALLS: OnceLock<bool> = OnceLock::new();

/// Returns whether stalls are to be printed. The first call reads `PACELINE_REPORT`, and prints a line on
/// standard error for each name that does not exist.
pub(crate) fn are_stalls_requested() -> bool {
    STALLS.get().copied().unwrap_or_else(read_environment)
}

/// Reads the variable and stores the request. Prints a line for each unknown name, unless another thread was
/// first: that thread may wait for standard error, and this one does not.
#[cold]
fn read_environment() -> bool {
    let text = env::var_os("PACELINE_REPORT").unwrap_or_default();
    let text = text.to_string_lossy();
    let (requested, unknown) = parse(&text);
    if STALLS.set(requested).is_ok() {
        for name in unknown {
            notice::print(format_args!(
                "PACELINE_REPORT names {name:?}, which is no report; there is: stalls"
            ));
        }
    }
    requested
}

/// Returns whether stalls are among the names in `text`, which commas separate, and the other names.
fn parse(text: &str) -> (bool, Vec<&str>) {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let (stalls, unknown): (Vec<_>, Vec<_>) = names.partition(|name| *name == "stalls");
    (!stalls.is_empty(), unknown)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        assert_eq!(parse(""), (false, vec![]));
        assert_eq!(parse("stalls"), (true, vec![]));
        assert_eq!(parse(" stalls ,, "), (true, vec![]));
        assert_eq!(parse("stall,stalls,Stalls"), (true, vec!["stall", "Stalls"]));
    }
}
