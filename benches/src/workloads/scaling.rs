//! Does a second worker help, and what does it cost?
//!
//! Hypothesis: with short handlers one thread that leads and polls is enough on two cores that also run the load;
//! with 20 microseconds of work throughput grows with the workers until the cores are used up.

use super::Outcome;
use crate::driver::environment::cores;
use crate::driver::plan::Plan;
use crate::driver::plot::{Caption, plot};
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, P50, P99, RATE, Sweep, VOLUNTARY};
use crate::driver::table;
use crate::svg::Scale;

pub(super) const QUESTION: &str = "from one worker to the cores there are (and twice that)";

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|count| *count <= 2 * cores())
        .collect();
    counts.push(cores());
    counts.sort_unstable();
    counts.dedup();
    let points = plan.pick(&counts, &counts, "workers");
    let rounds = plan.rounds.min(3);
    let title = "20 us of work per request, 64 connections, against workers";
    let sweep = Sweep::measure("scaling", title, points, &plan.threaded_rivals(), rounds, |rival, point| {
        measure(rival, point.x as usize, &plan.load("/w20", 64), None)
    });
    table::print(&sweep, &[RATE, CPU, P50, P99, VOLUNTARY]);
    let caption = Caption {
        title: "Throughput against workers, 20 us of work per request",
        x: "workers",
        x_scale: Scale::Steps,
        y: "requests per second",
        y_unit: 1.0,
        left_out: plan.left_out(&plan.threaded_rivals()),
    };
    results.save_plot("scaling-throughput", plot(&sweep, RATE, &caption))?;
    results.add(sweep.to_json());
    Ok(())
}
