//! How much do short requests suffer beside handlers that block their thread, or burn CPU?
//!
//! Hypothesis: a runtime with its reactor held by a blocked worker sees no events until that worker returns;
//! here a follower leads at once, and a replacement thread starts if all threads are stuck. Where the program
//! says which handlers take long, as the manuals ask for, no runtime suffers.

use std::time::Duration;

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::plot::{Caption, plot};
use crate::driver::results::Results;
use crate::driver::rig::{Beside, measure};
use crate::driver::sweep::{CORES, CPU, P50, P99, RATE, SLOW, STARVED, Sweep};
use crate::servers::APART;
use crate::svg::Scale;

pub(super) const QUESTION: &str = "16 short connections beside handlers that block 20 ms, or burn 5 ms";

const SHORT: usize = 16;

/// A single thread has nothing to show beside a handler that blocks it.
const ONE_THREAD: [&str; 2] = ["floor", "tokio-ct"];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let blocking = "handlers that block their thread for 20 ms";
    let sweep = measure_beside(plan, "/b", "blocked", blocking, &[0, 1, 2, 4, 8], &[0, 4]);
    let caption = Caption {
        title: &format!("p99 latency of short requests beside {blocking}"),
        x: &format!("connections with {blocking}"),
        x_scale: Scale::Steps,
        y: "p99 latency (ms)",
        y_unit: 1_000.0,
        left_out: "floor, tokio-ct (only one thread)",
    };
    results.save_plot("blocked-p99", plot(&sweep, P99, &caption))?;
    let printed = &[RATE, P99, P50, CPU, CORES, SLOW, STARVED];
    report(results, &sweep, printed);
    if plan.quick {
        return Ok(());
    }
    let computing = "handlers that compute for 5 ms";
    let sweep = measure_beside(plan, "/c", "burning", computing, &[1, 2, 4, 8], &[]);
    report(results, &sweep, printed);
    Ok(())
}

fn measure_beside(plan: &Plan, path: &str, name: &str, what: &str, full: &[usize], quick: &[usize]) -> Sweep {
    // The window must be long compared with 20 ms, or one blocked handler more or less decides.
    let long = Duration::from_millis(if plan.quick { 300 } else { 500 });
    let plan = &Plan { window: plan.window.max(long), ..plan.in_few_rounds() };
    let rivals = Plan::rivals().into_iter().filter(|rival| !ONE_THREAD.contains(rival));
    let rivals: Vec<_> = rivals.chain(APART.iter().copied()).collect();
    let title = format!("{SHORT} short connections beside {what}, {} workers", plan.threads);
    let points = plan.pick(full, quick, what);
    Sweep::measure(name, title, plan, points, &rivals, |rival, point| {
        let beside = Beside { path: path.to_owned(), connections: point.x as usize };
        measure(rival, plan, &plan.load("/", SHORT), Some(&beside))
    })
}
