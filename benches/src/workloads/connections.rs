//! How do throughput and CPU per request change with the number of connections?
//!
//! Hypothesis: with one connection every request pays for a sleep, unless the leader spins; with many
//! connections one wait returns many events, and the rest is the price of a runtime over the floor.

use std::io;

use super::Outcome;
use crate::descriptors;
use crate::driver::plan::Plan;
use crate::driver::plot::{Caption, plot};
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, INVOLUNTARY, P50, P99, P999, PEAK, RATE, STARVED, Sweep, VOLUNTARY};
use crate::driver::{ace, table};
use crate::svg::Scale;

pub(super) const QUESTION: &str = "request/response over 1 to 10 000 connections";

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let points = plan.pick(&[1, 4, 16, 64, 256, 1_000, 10_000], &[1, 4, 64, 1_000], "connections");
    let title = format!("Request and response, {} workers, load on the same machine", plan.threads);
    let sweep = Sweep::measure("connections", title, points, &plan.rivals(), plan.rounds, |rival, point| {
        let connections = point.x as usize;
        possible(rival, connections)?;
        measure(rival, plan.threads, &plan.load("/", connections), None)
    });
    table::print(&sweep, &[RATE, CPU, P50, P99, P999, VOLUNTARY, INVOLUNTARY, PEAK, STARVED]);
    let caption = |title, y| Caption {
        title,
        x: "connections",
        x_scale: Scale::Log,
        y,
        y_unit: 1.0,
        left_out: plan.left_out(&plan.rivals()),
    };
    let throughput = caption("Throughput against connections", "requests per second");
    results.save_plot("connections-throughput", plot(&sweep, RATE, &throughput))?;
    let cpu = caption("CPU time of the server per request, against connections", "CPU per request (µs)");
    results.save_plot("connections-cpu", plot(&sweep, CPU, &cpu))?;
    results.add(sweep.to_json());
    Ok(())
}

/// Checks that a rival can serve so many connections. `Err` has the reason for the tables.
fn possible(rival: &str, connections: usize) -> io::Result<()> {
    // ACE_TP_Reactor waits with select().
    const SELECT_LIMIT: usize = 900;
    descriptors::allow(connections)?;
    if rival == ace::NAME && connections > SELECT_LIMIT {
        return Err(io::Error::other("ACE_TP_Reactor uses select(), which ends at 1 024 descriptors"));
    }
    Ok(())
}
