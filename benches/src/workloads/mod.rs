//! The workloads, one question per file.

use std::error::Error;

use crate::driver::ace;
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::sweep::{Metric, Sweep};
use crate::driver::table;

mod axum;
mod blocked;
mod check;
mod churn;
mod connections;
mod cores;
mod executors;
mod fairness;
mod hyper;
mod idle;
mod paced;
mod syscalls;
mod tasks;
mod transfer;
mod work;

pub(crate) use fairness::compare;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Prints and saves a sweep.
fn report(results: &mut Results, sweep: &Sweep, printed: &[Metric]) {
    table::print(sweep, printed);
    results.add(sweep.to_json());
}

/// Builds all programs before the first workload, so that a failure shows at once.
pub(crate) fn prepare(chosen: &[&Workload]) -> Outcome {
    // If ACE is missing, the tables say why.
    let _ = ace::program();
    for workload in chosen {
        match workload.name {
            "axum" => axum::prepare()?,
            "fairness" => fairness::prepare()?,
            "tasks" => tasks::prepare()?,
            _ => {}
        }
    }
    Ok(())
}

/// What the driver can run: its name, its question, and how.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    pub(crate) runs: Runs,
    pub(crate) run: fn(&Plan, &mut Results) -> Outcome,
}

/// Which runs of all workloads include one of them. A run by name includes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    Always,
    InFull,
    ByName,
}

pub(crate) const ALL: &[Workload] = &[
    Workload {
        name: "connections",
        question: connections::QUESTION,
        runs: Runs::Always,
        run: connections::run,
    },
    Workload { name: "beside", question: connections::BESIDE, runs: Runs::Always, run: connections::beside },
    Workload { name: "syscalls", question: syscalls::QUESTION, runs: Runs::Always, run: syscalls::run },
    Workload { name: "blocked", question: blocked::QUESTION, runs: Runs::Always, run: blocked::run },
    Workload { name: "work", question: work::QUESTION, runs: Runs::Always, run: work::run },
    Workload { name: "paced", question: paced::QUESTION, runs: Runs::Always, run: paced::run },
    Workload { name: "churn", question: churn::QUESTION, runs: Runs::Always, run: churn::run },
    Workload { name: "idle", question: idle::QUESTION, runs: Runs::Always, run: idle::run },
    Workload { name: "scaling", question: cores::SCALING, runs: Runs::InFull, run: cores::scaling },
    Workload { name: "cores", question: cores::QUESTION, runs: Runs::ByName, run: cores::run },
    Workload { name: "executors", question: executors::QUESTION, runs: Runs::ByName, run: executors::run },
    Workload { name: "fairness", question: fairness::QUESTION, runs: Runs::ByName, run: fairness::run },
    Workload { name: "hyper", question: hyper::QUESTION, runs: Runs::InFull, run: hyper::run },
    Workload { name: "axum", question: axum::QUESTION, runs: Runs::InFull, run: axum::run },
    Workload { name: "check", question: check::QUESTION, runs: Runs::InFull, run: check::run },
    Workload { name: "transfer", question: transfer::QUESTION, runs: Runs::Always, run: transfer::run },
    Workload { name: "tasks", question: tasks::QUESTION, runs: Runs::Always, run: tasks::run },
];
