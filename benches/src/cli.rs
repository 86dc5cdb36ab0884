//! The driver's command line.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::driver::environment;
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::workloads::{self, Workload};

/// The program behind `src/main.rs`: the driver, or one of the roles it starts itself in.
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        Some((role, rest)) if role == "serve" => crate::servers::from_arguments(rest).map_err(Into::into),
        Some((role, rest)) if role == "load" => crate::load::main(rest),
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
        "usage: paceline-bench --quick | --full | WORKLOAD... [--quick]\n\n\
         --quick takes under 2 minutes, --full under 20. Workloads:\n{}",
        workloads.join("\n")
    )
}

fn drive(words: &[String]) -> Result<(), Box<dyn Error>> {
    let quick = words.iter().any(|word| word == "--quick");
    let full = words.iter().any(|word| word == "--full");
    let names: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    if (names.is_empty() && !quick && !full) || (quick && full) {
        return Err(usage().into());
    }
    let named = |one: &&Workload| names.is_empty() || names.iter().any(|name| *name == one.name);
    let chosen: Vec<&Workload> = workloads::ALL.iter().filter(named).collect();
    if !names.is_empty() && chosen.len() != names.len() {
        return Err(usage().into());
    }
    let plan = if quick { Plan::quick() } else { Plan::full() };
    let run = match (names.is_empty(), quick) {
        (true, true) => "quick".to_owned(),
        (true, false) => "full".to_owned(),
        (false, _) => names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("-"),
    };
    raise_descriptor_limit();
    println!("{:#}", environment::describe());
    if !cfg!(feature = "paceline") {
        println!("paceline itself is absent: this was built without the feature `paceline`");
    }
    let start = Instant::now();
    let mut results = Results::open()?;
    for workload in chosen {
        results.look_around();
        let from = Instant::now();
        (workload.run)(&plan, &mut results)?;
        eprintln!("{}: {:.0} s", workload.name, from.elapsed().as_secs_f64());
    }
    results.save(&run, &plan)?;
    println!("took {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// As far as the system allows; servers and load inherit it. Workloads that need more say so.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A failure leaves the old limit, which the workloads look at.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
