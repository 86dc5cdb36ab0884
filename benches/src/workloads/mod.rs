//! The workloads, one question per file.

use std::error::Error;

use crate::driver::plan::Plan;
use crate::driver::results::Results;

mod blocked;
mod check;
mod churn;
mod connections;
mod executors;
mod idle;
mod scaling;
mod syscalls;
mod tasks;
mod work;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// What the driver can run: its name, its question, and how.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    pub(crate) run: fn(&Plan, &mut Results) -> Outcome,
}

pub(crate) const ALL: &[Workload] = &[
    Workload { name: "connections", question: connections::QUESTION, run: connections::run },
    Workload { name: "syscalls", question: syscalls::QUESTION, run: syscalls::run },
    Workload { name: "blocked", question: blocked::QUESTION, run: blocked::run },
    Workload { name: "work", question: work::QUESTION, run: work::run },
    Workload { name: "churn", question: churn::QUESTION, run: churn::run },
    Workload { name: "idle", question: idle::QUESTION, run: idle::run },
    Workload { name: "scaling", question: scaling::QUESTION, run: scaling::run },
    Workload { name: "executors", question: executors::QUESTION, run: executors::run },
    Workload { name: "check", question: check::QUESTION, run: check::run },
    Workload { name: "tasks", question: tasks::QUESTION, run: tasks::run },
];
