//! Do several executors in one process disturb each other?
//!
//! Hypothesis: runtimes with a reactor each share nothing, so two of them with one thread each do as much as
//! one with two threads, or more. Executors over one reactor (smol, paceline's `Executor` on the default
//! instance) pay for a wake whenever a thread takes an event of another executor. More threads than cores
//! cost all rivals the same.

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, P50, P99, RATE, STARVED, Sweep, VOLUNTARY};
use crate::load;

pub(super) const QUESTION: &str = "1, 2 and 4 executors in one process";

const CONNECTIONS: usize = 64;

/// `paceline` is a `Runtime` each; `paceline-executor` an `Executor` each, on threads of its own, over one
/// reactor.
const RIVALS: [&str; 5] = ["tokio", "tokio-ct", "smol", "paceline", "paceline-executor"];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let plan = &plan.in_few_rounds();
    let points = plan.pick(&[1, 2, 4], &[2], "executors");
    let title = format!(
        "Executors in one process that share {CONNECTIONS} connections and {} workers, one each at least",
        plan.threads
    );
    let known = |rival: &&str| cfg!(feature = "paceline") || !rival.starts_with("paceline");
    let rivals: Vec<&str> = RIVALS.into_iter().filter(known).collect();
    let sweep = Sweep::measure("executors", title, plan, points, &rivals, |rival, point| {
        let load = load::Plan { executors: point.x as u16, ..plan.load("/", CONNECTIONS) };
        measure(rival, plan, &load, None)
    });
    report(results, &sweep, &[RATE, CPU, P50, P99, VOLUNTARY, STARVED]);
    Ok(())
}
