//! How does throughput depend on the work per request, over few connections and over many?
//!
//! Hypothesis: without work a single thread that leads and polls is best. From a few microseconds of work on,
//! a second thread pays as soon as there is a second connection. With 100 microseconds the runtime no longer
//! matters, only that all workers are busy. The range between, 4 to 16 connections with 5 to 20 microseconds,
//! shows the effect of a rule for promotion.

use super::{Outcome, report};
use crate::driver::plan::Plan;
use crate::driver::plot::Caption;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CPU, P50, P99, RATE, STARVED, Sweep, VOLUNTARY};
use crate::svg::Scale;

pub(super) const QUESTION: &str = "0, 5, 20, 100 us of work per request over 1 to 64 connections";

const RIVALS: [&str; 5] = ["floor", "tokio", "smol", "paceline", "paceline-eager"];

/// Microseconds of work, what the figures are called, and whether a quick run has them.
const LENGTHS: [(usize, &str, bool); 4] =
    [(0, "work-0", false), (5, "work-5", true), (20, "work-20", true), (100, "work-100", false)];

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let plan = &plan.brief(if plan.quick { 150 } else { 250 });
    let rivals = Plan::named(&RIVALS);
    for (micros, name, _) in LENGTHS.into_iter().filter(|(.., in_quick)| *in_quick || !plan.quick) {
        let points = plan.pick(&[1, 2, 4, 8, 16, 64], &[4, 64], "connections");
        let fewer = if plan.quick { " (a full run: 0, 5, 20, 100 us, 1 to 64 connections)" } else { "" };
        let title = format!("{micros} us of work per request, {} workers{fewer}", plan.threads);
        let sweep = Sweep::measure(name, title, points, &rivals, plan.rounds.min(3), |rival, point| {
            let load = plan.load(&format!("/w{micros}"), point.x as usize);
            measure(rival, plan.threads, &load, None)
        });
        let title = &format!("Throughput against connections, {micros} µs of work per request");
        let caption = Caption::of_few(title, ("connections", Scale::Log), "requests per second");
        report(results, &sweep, &[RATE, CPU, P50, P99, VOLUNTARY, STARVED], ("throughput", RATE, &caption))?;
    }
    Ok(())
}
