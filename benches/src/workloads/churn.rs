//! What is the cost of a connection that lives for one request?
//!
//! Hypothesis: accept, registration and close are system calls that all rivals make; a runtime adds a task
//! and a source, so allocations and the reactor's table show here.

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, P50, P99, Point, RATE, Sweep, VOLUNTARY};
use crate::load;

pub(super) const QUESTION: &str = "connect, one request, close";

/// Each connection holds a local port until a minute after its close; the kernel has 28 000 per server port.
const MOST: usize = 20_000;

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let points = vec![Point { x: 16.0, label: "16 clients at a time".to_owned() }];
    let title = format!("Connect, one request, close; {} workers", plan.threads);
    let plan = &plan.in_few_rounds();
    let sweep = Sweep::measure("churn", title, plan, points, &Plan::rivals(), |rival, point| {
        let load = load::Plan { churn: Some(MOST), ..plan.load("/", point.x as usize) };
        measure(rival, plan, &load, None)
    });
    report(results, &sweep, &[RATE, CPU, P50, P99, VOLUNTARY]);
    Ok(())
}
