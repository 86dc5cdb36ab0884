//! From how much work per request on does the runtime no longer matter?
//!
//! Hypothesis: direct polling saves a few microseconds per request; beside 100 microseconds of work that is
//! noise, and what counts is that both workers are busy.

use super::Outcome;
use crate::driver::plan::Plan;
use crate::driver::plot::{Caption, plot};
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, P50, P99, RATE, STARVED, Sweep, VOLUNTARY};
use crate::driver::table;
use crate::svg::Scale;

pub(super) const QUESTION: &str = "handlers with 0, 5, 20, 100 microseconds of work";

const CONNECTIONS: usize = 64;

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let points = plan.pick(&[0, 5, 20, 100], &[5, 100], "us of work");
    let title = format!("Work per request, {CONNECTIONS} connections, {} workers", plan.threads);
    let rounds = plan.rounds.min(3);
    let sweep = Sweep::measure("work", title, points, &plan.rivals(), rounds, |rival, point| {
        let path = format!("/w{}", point.x as usize);
        measure(rival, plan.threads, &plan.load(&path, CONNECTIONS), None)
    });
    table::print(&sweep, &[RATE, CPU, P50, P99, VOLUNTARY, STARVED]);
    let caption = Caption {
        title: "Throughput against work per request",
        x: "CPU work per request (µs)",
        x_scale: Scale::Steps,
        y: "requests per second",
        y_unit: 1.0,
        left_out: plan.left_out(&plan.rivals()),
    };
    results.save_plot("work-throughput", plot(&sweep, RATE, &caption))?;
    results.add(sweep.to_json());
    Ok(())
}
