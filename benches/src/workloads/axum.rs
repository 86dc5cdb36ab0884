//! What does a program that was written for tokio gain if paceline takes the place of tokio?
//!
//! Hypothesis: most of a request is hyper's and axum's work, so the program saves only what paceline's polls
//! and wakes save; a route that blocks no longer delays the others.

use std::time::Duration;

use super::{Outcome, syscalls};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::{Beside, measure};
use crate::driver::swapped::{self, RIVALS};
use crate::driver::sweep::{CPU, P50, P99, P999, RATE, SLOW, STARVED, Sweep};
use crate::driver::table;
use crate::load;

pub(super) const QUESTION: &str = "axum on tokio, and the same program with paceline in tokio's place";

/// Builds before the first round, so that a failure shows at once.
pub(super) fn prepare() -> Outcome {
    for rival in RIVALS {
        swapped::program(rival).expect("it is one of them")?;
    }
    Ok(())
}

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let http1 = |connections| load::Plan { hyper: true, ..plan.load("/", connections) };

    let title = format!("axum, {} workers, load on the same machine", plan.threads);
    let points = plan.pick(&[1, 4, 64], &[1, 4, 64], "connections");
    let sweep = Sweep::measure("axum", title, points, RIVALS, plan.rounds, |rival, point| {
        measure(rival, plan.threads, &http1(point.x as usize), None)
    });
    table::print(&sweep, &[RATE, CPU, P50, P99, P999, STARVED]);
    results.add(sweep.to_json());

    // As in `blocked`.
    let window = plan.window.max(Duration::from_millis(500));
    let title = "axum, 4 connections beside others on a route that blocks its thread for 20 ms";
    let points = plan.pick(&[4], &[4], "that block");
    let sweep = Sweep::measure("axum-blocked", title, points, RIVALS, plan.rounds, |rival, point| {
        let beside = Beside { path: "/b".into(), connections: point.x as usize };
        measure(rival, plan.threads, &load::Plan { window, ..http1(4) }, Some(&beside))
    });
    table::print(&sweep, &[P99, RATE, P50, P999, CPU, SLOW, STARVED]);
    results.add(sweep.to_json());

    syscalls::count_all("axum-syscalls", RIVALS, &http1(64), plan.threads, results);
    Ok(())
}
