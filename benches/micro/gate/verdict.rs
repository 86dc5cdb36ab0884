//! Compares counts with the committed ones, case by case, and says what to do about a difference.

use super::figures::{ACCEPT, Figures, PATH};
use super::origin;
use crate::cases::Case;

/// How much more expensive a case may become, and how much cheaper before the figures should follow.
const ALLOWED: f64 = 0.05;

/// The results so far.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    committed: &'a Figures,
    dearer: Vec<String>,
    cheaper: Vec<String>,
    /// Cases that are counted and not committed, or the other way round.
    unmatched: Vec<String>,
    seen: Vec<&'static str>,
}

impl<'a> Verdict<'a> {
    /// Prints the head of the table.
    pub(super) fn new(committed: &'a Figures) -> Self {
        println!("{:16} {:>9} {:>9} {:>8}  instructions to", "case", "committed", "now", "change");
        Self { committed, dearer: vec![], cheaper: vec![], unmatched: vec![], seen: vec![] }
    }

    /// Returns whether a count is no reason to fail.
    pub(super) fn accepts(&self, case: &Case, count: f64) -> bool {
        self.committed.get(case.name).is_none_or(|committed| count <= committed * (1.0 + ALLOWED))
    }

    /// Prints a line of the table.
    pub(super) fn add(&mut self, case: &Case, count: f64) {
        let (name, operation) = (case.name, case.operation);
        self.seen.push(name);
        let Some(committed) = self.committed.get(name) else {
            println!("{name:16} {:>9} {count:>9.1} {:>8}  {operation}", "-", "-");
            return self.unmatched.push(format!("{name} has no committed figure"));
        };
        let percent = (count / committed - 1.0) * 100.0;
        println!("{name:16} {committed:>9.1} {count:>9.1} {percent:>+7.1}%  {operation}");
        let said = format!("{name} ({percent:+.1} %)");
        if !self.accepts(case, count) {
            self.dearer.push(said);
        } else if count < committed * (1.0 - ALLOWED) {
            self.cheaper.push(said);
        }
    }

    /// Finds committed figures without a case; called after all cases.
    pub(super) fn find_unmatched(&mut self) {
        let left_over = self.committed.cases.iter().filter(|(name, _)| !self.seen.contains(&name.as_str()));
        self.unmatched
            .extend(left_over.map(|(name, _)| format!("{name} has a committed figure and no case")));
    }

    /// Prints the conclusion. Returns true if the gate passes.
    pub(super) fn conclude(&self) -> bool {
        let percent = ALLOWED * 100.0;
        if !self.cheaper.is_empty() {
            println!("\ncheaper by more than {percent} %: {}", self.cheaper.join(", "));
            println!("Accept these, too, so that the gain is kept: {ACCEPT}");
        }
        if self.is_open() {
            return true;
        }
        if !self.dearer.is_empty() {
            println!("\nFAILED, more expensive by more than {percent} %: {}", self.dearer.join(", "));
        }
        if !self.unmatched.is_empty() {
            println!("\nFAILED: {}", self.unmatched.join(", "));
        }
        self.print_origins();
        println!(
            "\nIf the change buys something, or comes with a new compiler or dependency: accept the figures, and commit"
        );
        println!("{PATH} with the reason.\n  {ACCEPT}");
        false
    }

    fn is_open(&self) -> bool {
        self.dearer.is_empty() && self.unmatched.is_empty()
    }

    fn print_origins(&self) {
        let (then, now) = (&self.committed.origin, origin::here());
        let only_then: Vec<_> = then.iter().filter(|line| !now.contains(line)).map(String::as_str).collect();
        let only_now: Vec<_> = now.iter().filter(|line| !then.contains(line)).map(String::as_str).collect();
        if only_then.is_empty() && only_now.is_empty() {
            println!(
                "Compiler, libc and dependencies are those of the committed figures, so the change is in the source."
            );
        } else {
            println!(
                "The committed figures are of {}; this is {}.",
                only_then.join(", "),
                only_now.join(", ")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::ALL;

    fn case(name: &str) -> &'static Case {
        ALL.iter().find(|case| case.name == name).unwrap()
    }

    fn committed() -> Figures {
        let mut figures = Figures::default();
        figures.add("slot", 1_000.0);
        figures.add("spawn", 1_000.0);
        figures
    }

    #[test]
    fn a_case_may_grow_by_five_percent_and_no_more() {
        let committed = committed();
        let mut verdict = Verdict::new(&committed);
        verdict.add(case("slot"), 1_050.0);
        assert!(verdict.conclude());
        verdict.add(case("spawn"), 1_051.0);
        assert_eq!(verdict.dearer, ["spawn (+5.1 %)"]);
        assert!(!verdict.conclude());
    }

    #[test]
    fn a_case_that_became_cheaper_is_told_and_passes() {
        let committed = committed();
        let mut verdict = Verdict::new(&committed);
        verdict.add(case("slot"), 900.0);
        assert_eq!(verdict.cheaper, ["slot (-10.0 %)"]);
        assert!(verdict.conclude());
    }

    #[test]
    fn cases_and_figures_must_be_the_same() {
        let committed = committed();
        let mut verdict = Verdict::new(&committed);
        verdict.add(case("slot"), 1_000.0);
        verdict.add(case("yield"), 1.0);
        verdict.find_unmatched();
        assert_eq!(
            verdict.unmatched,
            ["yield has no committed figure", "spawn has a committed figure and no case"]
        );
        assert!(!verdict.conclude());
    }
}
