//! Which lines of memory does a request write, and a spawn?
//!
//! Hypothesis: no request writes a line that every thread writes, but those of leadership and of the batch.
//! A line that every thread writes moves from core to core with each write, which two cores hardly show and
//! sixty-four do. Only in a build with `--cfg paceline_contention`.

use ::paceline::Runtime;
use serde_json::json;

use super::Outcome;
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::count_writes;
use crate::driver::writes::Written;
use crate::servers::contention::counted;

pub(super) const QUESTION: &str = "lines of memory that a request, and a spawn, writes";

/// Rounds of a case of spawns.
const SPAWNS: usize = 100_000;
/// Tasks that are spawned from outside before the first of them is awaited.
const BURST: usize = 100;

type Case = fn(&Runtime);

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    println!("\n## Writes of one request: 64 connections, no work, 2 workers");
    let requests = count_writes("paceline", 2, &plan.load("/", 64))?;
    requests.print("request");
    let mut parts = vec![("request", requests.to_json())];
    let cases: [(&str, &str, Case); 2] = [
        ("spawn inside", "spawned and awaited in one of two tasks", spawn_inside),
        ("spawn outside", "spawned by a thread that is no worker", spawn_outside),
    ];
    for (name, how, case) in cases {
        println!("\n## Writes of one task, {how}; 2 workers");
        let runtime = Runtime::builder().threads(2).build()?;
        case(&runtime);
        ::paceline::count_writes(true);
        case(&runtime);
        let written = Written::read(&counted(), SPAWNS as f64).ok_or("no counts")?;
        written.print("task");
        parts.push((name, written.to_json()));
    }
    let parts: serde_json::Map<_, _> =
        parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
    results.add(json!({ "name": "writes", "parts": parts }));
    Ok(())
}

fn spawn_inside(runtime: &Runtime) {
    let half = || async {
        for _ in 0..SPAWNS / 2 {
            ::paceline::spawn(async {}).await;
        }
    };
    let halves = [runtime.spawn(half()), runtime.spawn(half())];
    runtime.block_on(async {
        for half in halves {
            half.await;
        }
    });
}

fn spawn_outside(runtime: &Runtime) {
    for _ in 0..SPAWNS / BURST {
        let tasks: Vec<_> = (0..BURST).map(|_| runtime.spawn(async {})).collect();
        runtime.block_on(async {
            for task in tasks {
                task.await;
            }
        });
    }
}
