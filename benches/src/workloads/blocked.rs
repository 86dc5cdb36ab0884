//! How much do short requests suffer beside handlers that block their thread, or burn CPU?
//!
//! Hypothesis: a runtime with its reactor held by a blocked worker sees no events until that worker returns;
//! here a follower leads at once, and a replacement thread starts if all threads are stuck.

use std::time::Duration;

use super::Outcome;
use crate::driver::plan::Plan;
use crate::driver::plot::{Caption, plot};
use crate::driver::results::Results;
use crate::driver::rig::{Beside, measure};
use crate::driver::sweep::{CPU, P50, P99, P999, RATE, SLOW, STARVED, Sweep};
use crate::driver::table;
use crate::svg::Scale;

pub(super) const QUESTION: &str = "16 short connections beside handlers that block 20 ms, or burn 5 ms";

const SHORT: usize = 16;

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    block(plan, results, "/b", "blocked", "block their thread for 20 ms", &[0, 1, 2, 4, 8], &[0, 1, 4])?;
    block(plan, results, "/c", "burning", "burn 5 ms of CPU", &[1, 2, 4, 8], &[2])
}

fn block(
    plan: &Plan,
    results: &mut Results,
    path: &str,
    name: &'static str,
    what: &str,
    full: &[usize],
    quick: &[usize],
) -> Outcome {
    // The window must be long compared with 20 ms, or one blocked handler more or less decides.
    let long = Duration::from_millis(if plan.quick { 300 } else { 500 });
    let plan = &Plan { window: plan.window.max(long), ..plan.clone() };
    let points = plan.pick(full, quick, &format!("handlers that {what}"));
    let title = format!("{SHORT} short connections beside handlers that {what}, {} workers", plan.threads);
    let rounds = plan.rounds.min(3);
    let sweep = Sweep::measure(name, title, points, &plan.threaded_rivals(), rounds, |rival, point| {
        let beside = Beside { path: path.to_owned(), connections: point.x as usize };
        measure(rival, plan.threads, &plan.load("/", SHORT), Some(&beside))
    });
    table::print(&sweep, &[RATE, P50, P99, P999, CPU, SLOW, STARVED]);
    if sweep.rows.len() > 1 {
        let across = format!("connections whose handlers {what}");
        let caption = |title, y, y_unit| Caption {
            title,
            x: &across,
            x_scale: Scale::Steps,
            y,
            y_unit,
            left_out: plan.left_out(&plan.threaded_rivals()),
        };
        let title = format!("p99 latency of short requests beside handlers that {what}");
        let p99 = caption(&title, "p99 latency (ms)", 1_000.0);
        results.save_plot(&format!("{name}-p99"), plot(&sweep, P99, &p99))?;
        let title = format!("Short requests per second beside handlers that {what}");
        let rate = caption(&title, "short requests per second", 1.0);
        results.save_plot(&format!("{name}-throughput"), plot(&sweep, RATE, &rate))?;
    }
    results.add(sweep.to_json());
    Ok(())
}
