//! The environment variable `PACELINE_REPORT`: names of reports, separated by commas, that every runtime of
//! the process prints on standard error.

use std::env;
use std::sync::OnceLock;

use super::print;

/// A report that the variable may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportName {
    /// A line for each runtime that starts.
    Start,
    /// The stalls.
    Stalls,
}

const NAMES: [(&str, ReportName); 2] = [("start", ReportName::Start), ("stalls", ReportName::Stalls)];

impl ReportName {
    /// Returns whether this report is to be printed. The first call reads the variable, and prints a line for
    /// each name that is no report.
    pub(crate) fn is_made(self) -> bool {
        /// A cell of std in all modes: it is no step of a protocol.
        static MADE: OnceLock<Vec<ReportName>> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let (made, unknown) =
                parse(&env::var_os("PACELINE_REPORT").unwrap_or_default().to_string_lossy());
            for name in unknown {
                let known = NAMES.map(|(name, _)| name).join(", ");
                print(format_args!("PACELINE_REPORT names {name:?}, which is no report; there are: {known}"));
            }
            made
        });
        made.contains(&self)
    }
}

/// Returns the reports that are named in `text`, whose names commas separate, and the other names.
fn parse(text: &str) -> (Vec<ReportName>, Vec<String>) {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let (mut made, mut unknown) = (Vec::new(), Vec::new());
    for name in names {
        match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, report)) => made.push(*report),
            None => unknown.push(name.into()),
        }
    }
    (made, unknown)
}

/// Prints the line for a runtime that starts, with this number of workers.
pub(crate) fn print_start(workers: usize, in_place_of_tokio: bool) {
    let features = [
        ("hyper", cfg!(feature = "hyper")),
        ("macros", cfg!(feature = "macros")),
        ("sim", cfg!(feature = "sim")),
        ("test-clock", cfg!(feature = "test-clock")),
        ("tokio", cfg!(feature = "tokio")),
        ("tokio-io", cfg!(feature = "tokio-io")),
        ("trace", cfg!(feature = "trace")),
        ("tracing", cfg!(feature = "tracing")),
    ];
    let features: Vec<_> = features.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let place = if in_place_of_tokio { " in the place of tokio" } else { "" };
    let threads = match workers {
        0 => "the current thread".into(),
        1 => "1 worker".into(),
        many => format!("{many} workers"),
    };
    let features = if features.is_empty() { "none".into() } else { features.join(", ") };
    let version = env!("CARGO_PKG_VERSION");
    print(format_args!("version {version} runs{place}, with {threads}; features: {features}"));
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::ReportName::{Stalls, Start};
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        assert_eq!(parse(""), (vec![], vec![]));
        assert_eq!(parse(" stalls ,, "), (vec![Stalls], vec![]));
        assert_eq!(parse("stalls,start"), (vec![Stalls, Start], vec![]));
        assert_eq!(parse("stall,stalls,Stalls"), (vec![Stalls], vec!["stall".into(), "Stalls".into()]));
    }
}
