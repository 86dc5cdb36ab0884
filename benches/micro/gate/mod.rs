//! The gate: counts the instructions of each case and compares them with the committed ones.
//!
//! The gate counts instructions because the counts repeat; time on a shared machine does not. A program with
//! more instructions is not always slower, but on these paths a surplus allocation, lock or check shows here,
//! and a timing hides it in noise.
//!
//! - [`callgrind`]: counts one case.
//! - [`figures`]: the committed file.
//! - [`origin`]: the compiler and libraries that the figures depend on besides this source.
//! - [`verdict`]: compares, and says what to do.

mod callgrind;
mod figures;
mod origin;
mod verdict;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use self::figures::Figures;
use self::verdict::Verdict;
use crate::cases::{ALL, Case};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The exit code of a section of `.ci/run` that cannot run here.
const SKIPPED: u8 = 77;

const NO_VALGRIND: &str = "valgrind is not installed, so no instructions can be counted";

/// The cargo profile for this program.
const PROFILE: &str = "instructions";

/// How often a case is counted that seems to have become more expensive.
const COUNTS: usize = 4;

const USAGE: &str = "usage: instructions --check [CASE]... | --accept";

/// The program.
pub(super) fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [callgrind::ROLE, case, operations] => callgrind::run(case, operations),
        ["--check", ref names @ ..] => check(names),
        ["--accept"] => accept(),
        _ => Err(USAGE.into()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("instructions: {error}");
        ExitCode::FAILURE
    })
}

fn case_named(name: &str) -> Outcome<&'static Case> {
    ALL.iter().find(|case| case.name == name).ok_or_else(|| format!("there is no case `{name}`").into())
}

/// Returns the cases to count: the named ones, or all.
fn cases(names: &[&str]) -> Outcome<Vec<&'static Case>> {
    if names.is_empty() {
        return Ok(ALL.iter().filter(|case| case.counted.is_some()).collect());
    }
    names.iter().map(|name| case_named(name)).collect()
}

/// Other profiles split the code into several units, so that unrelated changes move the counts.
fn insist_on_profile() -> Outcome<()> {
    let program = std::env::current_exe()?;
    let profile = program.parent().and_then(Path::file_name);
    if profile.is_some_and(|profile| profile == PROFILE) {
        return Ok(());
    }
    Err(format!("this program was built with another profile; use `cargo run --profile {PROFILE}`").into())
}

/// Returns the reason if figures cannot be compared here.
fn obstacle(committed: &Figures) -> Option<&'static str> {
    if !committed.origin.contains(&origin::platform()) {
        return Some("the committed figures are of another platform");
    }
    if !callgrind::is_installed() {
        return Some(NO_VALGRIND);
    }
    None
}

fn check(names: &[&str]) -> Outcome<ExitCode> {
    insist_on_profile()?;
    let cases = cases(names)?;
    let committed = Figures::read()?;
    if let Some(obstacle) = obstacle(&committed) {
        println!("skipped: {obstacle}");
        return Ok(ExitCode::from(SKIPPED));
    }
    let mut verdict = Verdict::new(&committed);
    for case in cases {
        let mut count = callgrind::count(case)?;
        // A runtime does some things by the clock, as the ticks of its deputy. On a machine that is busy,
        // under callgrind, they can be a tenth of what is counted. They only add, so the least of some counts
        // is the best.
        for _ in 1..COUNTS {
            if verdict.accepts(case, count) {
                break;
            }
            count = count.min(callgrind::count(case)?);
        }
        verdict.add(case, count);
    }
    if names.is_empty() {
        verdict.find_unmatched();
    }
    Ok(if verdict.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn accept() -> Outcome<ExitCode> {
    insist_on_profile()?;
    if !callgrind::is_installed() {
        return Err(NO_VALGRIND.into());
    }
    let mut figures = Figures::new(origin::here());
    for case in cases(&[])? {
        let count = callgrind::count(case)?;
        println!("{}", figures::line(case.name, count));
        figures.add(case.name, count);
    }
    figures.write()?;
    println!("written to {}: commit it, and say in the commit why they changed", figures::PATH);
    Ok(ExitCode::SUCCESS)
}
