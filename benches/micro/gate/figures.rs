//! The committed figures: a text file, so that a review shows changes.

use std::fmt::Write;

use super::Outcome;
use super::origin::Origin;

/// The path of the file, from the root of the repository.
pub(super) const PATH: &str = "benches/micro/instructions.txt";

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/micro/instructions.txt");

/// The command that replaces the figures.
pub(super) const ACCEPT: &str =
    "cargo run --profile instructions -p paceline-bench --bin instructions -- --accept";

/// Figures, with the versions that they were counted with.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) origin: Origin,
    pub(super) cases: Vec<(String, f64)>,
}

impl Figures {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, cases: Vec::new() }
    }

    pub(super) fn read() -> Outcome<Self> {
        let text = std::fs::read_to_string(FILE).map_err(|error| format!("{PATH}: {error}"))?;
        Self::parse(&text)
    }

    pub(super) fn write(&self) -> Outcome<()> {
        std::fs::write(FILE, self.to_text()).map_err(|error| format!("{PATH}: {error}").into())
    }

    pub(super) fn add(&mut self, case: &str, count: f64) {
        self.cases.push((case.to_owned(), count));
    }

    pub(super) fn get(&self, case: &str) -> Option<f64> {
        self.cases.iter().find(|(name, _)| name == case).map(|(_, count)| *count)
    }

    fn parse(text: &str) -> Outcome<Self> {
        let mut figures = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(' ').map(|(name, rest)| (name, rest.trim())) {
                Some(("with", made_by)) => figures.origin.push(made_by.to_owned()),
                Some((case, count)) => figures.add(case, count.parse()?),
                None => return Err(format!("{PATH}: `{line}` is no figure").into()),
            }
        }
        Ok(figures)
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "# Instructions per operation of the micro-benchmarks, counted by callgrind: the gate is `.ci/run instructions`.\n\
             # What each case does is written in cases/mod.rs. \
             To accept new figures, with the reason in the commit:\n\
             #   {ACCEPT}\n\n"
        );
        self.origin.iter().for_each(|made_by| writeln!(text, "with {made_by}").expect("a string takes all"));
        text.push('\n');
        self.cases.iter().for_each(|(name, count)| text += &(line(name, *count) + "\n"));
        text
    }
}

/// Formats a figure for the file.
pub(super) fn line(case: &str, count: f64) -> String {
    format!("{case:16} {count:8.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut figures =
            Figures::new(vec!["rustc 1.85.0 (4d91de4e4 2025-02-17)".to_owned(), "glibc 2.36".to_owned()]);
        figures.add("slot", 427.6);
        figures.add("a-case-with-a-long-name", 12_345.0);
        let read = Figures::parse(&figures.to_text()).unwrap();
        assert_eq!((read.origin, read.cases), (figures.origin, figures.cases));
    }

    #[test]
    fn a_broken_line_is_an_error() {
        assert!(Figures::parse("slot").is_err());
        assert!(Figures::parse("slot fast").is_err());
    }

    #[test]
    fn the_committed_file_has_a_figure_for_each_counted_case() {
        let committed = Figures::read().unwrap();
        let counted = crate::cases::ALL.iter().filter(|case| case.counted.is_some());
        assert_eq!(
            committed.cases.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            counted.map(|case| case.name).collect::<Vec<_>>(),
        );
    }
}
