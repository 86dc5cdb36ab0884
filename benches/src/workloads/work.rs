//! How does throughput depend on the work per request, over few connections and over many?
//!
//! Hypothesis: without work a single thread that leads and polls is best. From a few microseconds of work on,
//! a second thread pays as soon as there is a second connection, if it has a CPU. With 100 microseconds the
//! runtime no longer matters, only that all workers are busy. The range between, 4 to 16 connections with 5
//! to 20 microseconds, shows the effect of a rule for promotion.

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CORES, CPU, P50, P99, RATE, STARVED, Sweep, VOLUNTARY};

pub(super) const QUESTION: &str = "5, 20, 100 us of work per request over 1 to 64 connections";

const RIVALS: [&str; 4] = ["floor", "tokio", "smol", "paceline"];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let plan = &plan.brief(if plan.quick { 150 } else { 250 });
    for micros in [5, 20, 100].into_iter().filter(|micros| !plan.quick || *micros == 20) {
        let points = plan.pick(&[1, 4, 16, 64], &[4, 64], "connections");
        let title = format!("{micros} us of work per request, {} workers", plan.threads);
        let name = format!("work-{micros}");
        let sweep = Sweep::measure(name, title, plan, points, &Plan::named(&RIVALS), |rival, point| {
            measure(rival, plan, &plan.load(&format!("/w{micros}"), point.x as usize), None)
        });
        report(results, &sweep, &[RATE, CPU, CORES, P50, P99, VOLUNTARY, STARVED]);
    }
    Ok(())
}
