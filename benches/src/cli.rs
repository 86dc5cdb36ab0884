//! The driver's command line.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::handler;
use crate::workloads::{self, Runs, Workload};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The program behind `src/main.rs`: the driver, or one of the roles in which the driver starts itself.
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        Some((role, rest)) if role == "serve" => crate::servers::from_arguments(rest).map_err(Into::into),
        Some((role, rest)) if role == "load" => crate::load::main(rest),
        Some((role, [])) if role == "costs" => crate::costs::main(),
        Some((role, rest)) if role == "table" => crate::readme::main(rest.first()),
        Some((role, rest)) if role == "fairness-scene" => crate::fairness::main(rest).map_err(Into::into),
        Some((role, rest)) if role == "fairness-change" => workloads::compare(rest),
        Some((role, rest)) if role == "transfer-end" => crate::transfer::main(rest).map_err(Into::into),
        _ => drive(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paceline-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let workloads = workloads::ALL.iter().map(|one| format!("  {:12} {}", one.name, one.question));
    let workloads: Vec<_> = workloads.collect();
    format!(
        "usage: paceline-bench --quick | --full | WORKLOAD... [--quick]\n       \
         paceline-bench fairness-change BEFORE AFTER   (two figures.json of `fairness`)\n\n\
         --quick takes under 2 minutes, --full under 25. Workloads:\n{}",
        workloads.join("\n")
    )
}

/// The options of the command line.
#[derive(Debug)]
struct Request {
    quick: bool,
    /// The named workloads; empty for all.
    named: Vec<&'static Workload>,
}

impl Request {
    /// Returns `None` if only help was asked for.
    fn parse(words: &[String]) -> Outcome<Option<Request>> {
        let mut request = Request { quick: false, named: Vec::new() };
        let mut full = false;
        for word in words {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--quick" => request.quick = true,
                "--full" => full = true,
                option if option.starts_with('-') => {
                    return Err(format!("unknown option: {option}\n{}", usage()).into());
                }
                name => request.add(name)?,
            }
        }
        match (request.quick, full) {
            (true, true) => Err(format!("--quick or --full, not both\n{}", usage()).into()),
            (false, false) if request.named.is_empty() => Err(usage().into()),
            _ => Ok(Some(request)),
        }
    }

    fn add(&mut self, name: &str) -> Outcome<()> {
        let known = workloads::ALL.iter().find(|one| one.name == name);
        let known = known.ok_or_else(|| format!("unknown workload: {name:?}\n{}", usage()))?;
        if self.named.iter().all(|one| one.name != name) {
            self.named.push(known);
        }
        Ok(())
    }

    /// Returns the workloads to run, and those to leave out.
    fn split(&self) -> (Vec<&'static Workload>, Vec<&'static Workload>) {
        if self.named.is_empty() {
            workloads::ALL.iter().partition(|one| match one.runs {
                Runs::Always => true,
                Runs::InFull => !self.quick,
                Runs::ByName => false,
            })
        } else {
            (self.named.clone(), Vec::new())
        }
    }

    /// Returns the name of the run's folder.
    fn name(&self) -> String {
        let mut parts: Vec<&str> = self.named.iter().map(|one| one.name).collect();
        if parts.is_empty() || self.quick {
            parts.push(if self.quick { "quick" } else { "full" });
        }
        parts.join("-")
    }
}

fn drive(words: &[String]) -> Outcome<()> {
    let Some(request) = Request::parse(words)? else {
        println!("{}", usage());
        return Ok(());
    };
    if cfg!(debug_assertions) {
        return Err(
            "figures of a debug build are meaningless; use `cargo run --release -p paceline-bench`".into()
        );
    }
    let plan = if request.quick { Plan::quick() } else { Plan::full() };
    let (chosen, left_out) = request.split();
    // Servers and the load generator inherit the limit. Workloads that need more descriptors say so.
    crate::descriptors::raise_limit();
    workloads::prepare(&chosen)?;
    // Long enough for one or two undisturbed tries. The driver passes the result to the servers.
    handler::set_steps_per_micro(handler::calibrate(Duration::from_secs(1)));
    let start = Instant::now();
    let mut results = Results::open(&request.name(), &plan)?;
    println!("{:#}", results.machine());
    if !cfg!(feature = "paceline") {
        println!("paceline itself is missing: this program was built without the feature `paceline`");
    }
    for workload in left_out {
        println!("not in this run: {}, {}", workload.name, workload.question);
    }
    for workload in chosen {
        let from = Instant::now();
        results.run(|results| (workload.run)(&plan, results))?;
        eprintln!("{}: {:.0} s", workload.name, from.elapsed().as_secs_f64());
    }
    results.save(true)?;
    println!("plots and raw figures: {}", results.folder().display());
    println!("took {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Outcome<Option<Request>> {
        Request::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_run_is_named_after_what_was_asked_for() {
        let name = |line: &str| parsed(line).unwrap().unwrap().name();
        assert_eq!(
            ["--quick", "--full", "work", "work churn work --quick"].map(name),
            ["quick", "full", "work", "work-churn-quick"]
        );
    }

    #[test]
    fn a_workload_left_out_of_quick_runs_when_it_is_named() {
        let request = parsed("check --quick").unwrap().unwrap();
        assert_eq!(request.split().0.len(), 1);
        let (chosen, left_out) = parsed("--quick").unwrap().unwrap().split();
        assert!(left_out.iter().any(|one| one.name == "check") && !chosen.is_empty());
        let (_, left_out) = parsed("--full").unwrap().unwrap().split();
        assert_eq!(
            left_out.iter().map(|one| one.name).collect::<Vec<_>>(),
            ["cores", "executors", "fairness"]
        );
    }

    #[test]
    fn what_is_not_known_is_named_in_the_error() {
        for line in ["--qick", "nosuch", "work --fast"] {
            let word = line.split_whitespace().last().unwrap();
            assert!(parsed(line).unwrap_err().to_string().contains(word));
        }
        assert!(parsed("").is_err() && parsed("--quick --full").is_err());
    }
}
