//! How do throughput and CPU per request change with the number of connections?
//!
//! Hypothesis: with one connection every request pays for a sleep, unless the leader spins; with many
//! connections one wait returns many events, and the rest is the price of a runtime over the floor. Beside
//! other programs a thread that stays awake takes time from them, and one that sleeps waits for a core.

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::plot::{Caption, plot};
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CORES, CPU, LOAD, P50, P99, PEAK, RATE, STARVED, Sweep, VOLUNTARY};
use crate::svg::Scale;

pub(super) const QUESTION: &str = "request/response over 1 to 10 000 connections";
pub(super) const BESIDE: &str = "the same beside other programs: server and load on all CPUs together";

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let sweep = sweep("connections", plan, &[1, 4, 16, 64, 256, 1_000, 10_000], &[1, 64, 1_000]);
    report(results, &sweep, &[RATE, CPU, CORES, P50, P99, VOLUNTARY, PEAK, STARVED, LOAD]);
    let caption =
        |title, y| Caption { title, x: "connections", x_scale: Scale::Log, y, y_unit: 1.0, left_out: "" };
    let throughput = caption("Throughput against connections", "requests per second");
    results.save_plot("connections-throughput", plot(&sweep, RATE, &throughput))?;
    let cpu = caption("CPU time of the server per request, against connections", "CPU per request (µs)");
    results.save_plot("connections-cpu", plot(&sweep, CPU, &cpu))?;
    Ok(())
}

pub(super) fn beside(plan: &Plan, results: &mut Results) -> Outcome {
    let sweep = sweep("beside", &plan.together(), &[1, 4, 64, 1_000], &[64]);
    report(results, &sweep, &[RATE, CPU, CORES, P50, P99, VOLUNTARY, STARVED, LOAD]);
    Ok(())
}

fn sweep(name: &str, plan: &Plan, full: &[usize], quick: &[usize]) -> Sweep {
    let points = plan.pick(full, quick, "connections");
    let title = format!("Request and response, {} workers", plan.threads);
    Sweep::measure(name, title, plan, points, &Plan::rivals(), |rival, point| {
        measure(rival, plan, &plan.load("/", point.x as usize), None)
    })
}
