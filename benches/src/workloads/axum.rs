//! What does a program that was written for tokio gain if paceline takes the place of tokio?
//!
//! Hypothesis: most of a request is hyper's and axum's work, so the program saves only what paceline's polls
//! and wakes save; a route that blocks no longer delays the others.

use std::time::Duration;

use super::{Outcome, report, syscalls};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::{Beside, measure};
use crate::driver::swapped::{self, AXUM as RIVALS};
use crate::driver::sweep::{CORES, CPU, P50, P99, RATE, SLOW, STARVED, Sweep};
use crate::load;

pub(super) const QUESTION: &str = "axum on tokio, and the same program with paceline in tokio's place";

/// Builds before the first round, so that a failure shows at once.
pub(super) fn prepare() -> Outcome {
    Ok(swapped::prepare(RIVALS)?)
}

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let http1 = |connections| load::Plan { hyper: true, ..plan.load("/", connections) };

    let title = format!("axum, {} workers", plan.threads);
    let points = plan.pick(&[1, 4, 64, 1_000, 10_000], &[1, 64, 10_000], "connections");
    let sweep = Sweep::measure("axum", title, plan, points, RIVALS, |rival, point| {
        measure(rival, plan, &http1(point.x as usize), None)
    });
    report(results, &sweep, &[RATE, CPU, CORES, P50, P99, STARVED]);

    // As in `blocked`.
    let window = plan.window.max(Duration::from_millis(500));
    let title = "axum, 4 connections beside others on a route that blocks its thread for 20 ms";
    let points = plan.pick(&[4], &[4], "that block");
    let sweep = Sweep::measure("axum-blocked", title, plan, points, RIVALS, |rival, point| {
        let beside = Beside { path: "/b".into(), connections: point.x as usize };
        measure(rival, plan, &load::Plan { window, ..http1(4) }, Some(&beside))
    });
    report(results, &sweep, &[RATE, P99, P50, CPU, SLOW, STARVED]);

    syscalls::count_all("axum-syscalls", RIVALS, &http1(64), plan, results);
    Ok(())
}
