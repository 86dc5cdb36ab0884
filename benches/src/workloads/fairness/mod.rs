//! How long does a task wait beside tasks that compute for some milliseconds, yield, and go on?
//!
//! Hypothesis: on paceline a wait is bounded. If at most one task more than there are workers computes, a
//! ready task waits for two ticks and two polls at most: the deputy sees within two ticks that the workers
//! compute, and has another thread poll the others. On tokio a task waits behind those in the same queue,
//! and an event until a worker that computes looks at the driver again.
//!
//! Each scene is one process for each runtime, on all CPUs, for which the computing tasks, the waiting ones
//! and the threads at the other ends of their sockets compete.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Outcome;
use crate::driver::child::Child;
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::swapped::{self, FAIRNESS};
use crate::fairness::scene::{BUSY, PACED};

mod cells;
mod change;
mod matrix;

use cells::{Cell, Figure, Measured, Tally};
pub(crate) use change::compare;
use matrix::{Matrix, Scene};

pub(super) const QUESTION: &str =
    "the longest waits beside 1 to 16 tasks that compute and yield; by name only";

/// The runtimes, in the order of the tables; all others are compared with the first one.
const RIVALS: &[&str] = &[
    TOKIO,
    #[cfg(feature = "paceline")]
    PACELINE,
    SWAPPED,
];
const TOKIO: &str = "tokio";
#[cfg(feature = "paceline")]
const PACELINE: &str = "paceline";
/// The same program as for tokio, with paceline in the place of tokio.
const SWAPPED: &str = "swapped";

/// Number of cells that are named as the worst ones.
const WORST: usize = 10;

/// Builds before the first scene, so that a failure shows at once.
pub(super) fn prepare() -> Outcome {
    Ok(swapped::prepare(FAIRNESS)?)
}

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let matrix = if plan.quick { Matrix::quick() } else { Matrix::full() };
    println!("\n## Waits beside tasks that compute and yield; one process, on all CPUs");
    println!("\n{matrix}: {} processes, about {}", matrix.scenes().len() * RIVALS.len(), matrix.time());
    println!(
        "longest waits in ms, then medians; `!`: longer than tokio's, and than two ticks and two polls; `-`: none"
    );
    let mut all = Vec::new();
    for (at, scene) in matrix.scenes().iter().enumerate() {
        let measured = measure(scene, at % 2 == 1);
        cells::print(&measured);
        results.add(json!({ "name": format!("fairness-{}", scene.name()), "scene": measured.to_json() }));
        // A run of many minutes keeps what it has if it is interrupted.
        results.save(false)?;
        all.push(measured);
    }
    let cells: Vec<Cell> = all.iter().flat_map(Measured::cells).collect();
    println!();
    let tallies = RIVALS.iter().map(|rival| (*rival, Tally::of(&cells, rival)));
    for (rival, tally) in tallies.clone() {
        println!("{rival}: {tally}");
    }
    let worst = worst(&cells);
    println!(
        "the worst cells of all but {TOKIO}, by their multiple of the limit, or of tokio's wait if that is longer:"
    );
    worst.iter().for_each(|cell| println!("  {cell}"));
    let tallies: serde_json::Map<String, Value> =
        tallies.map(|(rival, tally)| (rival.to_owned(), tally.to_json())).collect();
    let worst: Vec<_> = worst.iter().map(ToString::to_string).collect();
    results.add(json!({ "name": "fairness", "tallies": tallies, "worst": worst }));
    Ok(())
}

/// Returns the cells of all but the reference that are the most above the limit, or above tokio if that is
/// higher.
fn worst<'a>(cells: &'a [Cell<'a>]) -> Vec<&'a Cell<'a>> {
    let mut marked: Vec<_> = cells.iter().filter(|cell| cell.is_marked()).collect();
    marked.sort_by(|one, other| other.excess().total_cmp(&one.excess()));
    marked.truncate(WORST);
    marked
}

/// Runs the scene on each runtime. Every second scene runs in reverse order, so that a disturbance affects
/// all alike.
fn measure(scene: &Scene, is_reverse: bool) -> Measured {
    let mut rivals: Vec<_> = RIVALS.iter().map(|rival| (*rival, Err(String::new()))).collect();
    let measure = |(rival, figures): &mut (&str, Result<_, String>)| {
        *figures = measure_one(scene, rival).map_err(|error| error.to_string());
    };
    if is_reverse {
        rivals.iter_mut().rev().for_each(measure)
    } else {
        rivals.iter_mut().for_each(measure)
    }
    Measured { scene: scene.clone(), rivals }
}

fn measure_one(scene: &Scene, rival: &str) -> io::Result<Vec<Figure>> {
    let built = |name| {
        let program = swapped::program(name).expect("the name of a build");
        program.map(Command::new).map_err(io::Error::other)
    };
    let mut command = match rival {
        TOKIO => built(FAIRNESS[0])?,
        SWAPPED => built(FAIRNESS[1])?,
        _ => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("fairness-scene");
            command
        }
    };
    command.args([scene.workers, scene.tasks].map(|number| number.to_string()));
    command.arg(scene.poll.as_micros().to_string()).arg(scene.window.as_millis().to_string());
    command.arg(if scene.is_busy { BUSY } else { PACED });
    let mut child = Child::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let output = child.0.stdout.take().expect("it is a pipe");
    // The process ends itself, whatever happens.
    let lines = BufReader::new(output).lines().map(|line| Figure::parse(&line?));
    let mut figures = lines.collect::<io::Result<Vec<_>>>()?;
    figures.retain(Figure::has_waits);
    match child.0.wait()? {
        status if status.success() => Ok(figures),
        status => Err(io::Error::other(format!("the scene ended early: {status}"))),
    }
}
