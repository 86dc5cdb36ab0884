//! The environment variable `PACELINE_REPORT`: names of reports, separated by commas, that every runtime of
//! the process prints on standard error. There is one so far: `stalls`.

use std::env;
use std::sync::OnceLock;

use crate::notice;

/// Returns whether stalls are to be printed. The first call reads the variable, and prints a line for each
/// name that is no report.
pub(crate) fn are_stalls_requested() -> bool {
    /// A cell of std in all modes: it is no step of a protocol.
    static STALLS: OnceLock<bool> = OnceLock::new();
    *STALLS.get_or_init(|| {
        let text = env::var_os("PACELINE_REPORT").unwrap_or_default();
        let text = text.to_string_lossy();
        let (stalls, unknown) = parse(&text);
        for name in unknown {
            notice::print(format_args!(
                "PACELINE_REPORT names {name:?}, which is no report; there is: stalls"
            ));
        }
        stalls
    })
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
