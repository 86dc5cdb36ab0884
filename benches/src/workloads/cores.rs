//! How far does each runtime scale, if its workers have cores of their own?
//!
//! Hypothesis: throughput grows with the workers up to the server's CPUs. If it stops earlier, and the CPU
//! time per request grows instead, the workers contend or wake each other too often. The load shares no core
//! with the server, and the output says where the load was the limit.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use super::{Outcome, report};
use crate::descriptors;
use crate::driver::division::{self, Division, ranges};
use crate::driver::plan::Plan;
use crate::driver::results::Results;
use crate::driver::rig::measure;
use crate::driver::sweep::{CORES, CPU, Cell, LOAD, P50, P99, Point, RATE, STARVED, Sweep, VOLUNTARY};

pub(super) const QUESTION: &str =
    "1 to 16 workers on cores of their own, over 64 to 10 000 connections; by name only";
pub(super) const SCALING: &str = "1 to 8 workers on the server's CPUs, which they share if there are fewer";

const WORKERS: [usize; 6] = [1, 2, 4, 8, 12, 16];
const CONNECTIONS: [usize; 3] = [64, 1_000, 10_000];
const MICROS: [usize; 4] = [0, 5, 20, 100];
const RIVALS: [&str; 3] = ["tokio", "smol", "paceline"];

/// When this time is over, the runs that are left are skipped.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// The CPU use, in percent, from which on the load, or a server, counts as saturated.
const BUSY: f64 = 90.0;

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let cpus = division::cores()?.iter().map(Vec::len).sum();
    measure_all("cores", &Matrix::new(cpus, descriptors::available()), plan, results)
}

pub(super) fn scaling(plan: &Plan, results: &mut Results) -> Outcome {
    let matrix = Matrix { workers: vec![1, 2, 4, 8], connections: vec![64, 1_000], micros: vec![0, 20] };
    measure_all("scaling", &matrix, plan, results)
}

fn measure_all(name: &str, matrix: &Matrix, plan: &Plan, results: &mut Results) -> Outcome {
    let cores = division::cores()?;
    let plan = plan.in_few_rounds();
    let minutes = matrix.minutes(&plan);
    println!("\n{matrix}: {} cells, {} rounds, about {minutes} minutes", matrix.cells(), plan.rounds);
    let end = Instant::now() + LIMIT;
    for &micros in &matrix.micros {
        let division = Division::of(&cores, micros);
        let plan = Plan { threads: division.server.len(), division, ..plan.clone() };
        for &connections in &matrix.connections {
            let name = format!("{name}-{micros}-{connections}");
            let sweep = sweep(name, &plan, &matrix.workers, (micros, connections), end);
            report(results, &sweep, &[RATE, CPU, CORES, P50, P99, VOLUNTARY, STARVED, LOAD]);
            println!("{}", limits(&sweep));
            // A run of many minutes, perhaps on a lent machine, keeps what it has if it is interrupted.
            results.save(false)?;
        }
    }
    Ok(())
}

fn sweep(
    name: String,
    plan: &Plan,
    workers: &[usize],
    (micros, connections): (usize, usize),
    end: Instant,
) -> Sweep {
    let load = plan.load(&format!("/w{micros}"), connections);
    let points = workers.iter().map(|workers| {
        let cpus = ranges(&plan.division.with_workers(*workers).server);
        Point { x: *workers as f64, label: format!("{workers} workers on CPUs {cpus}") }
    });
    let title = format!("{micros} us of work per request, {connections} connections");
    Sweep::measure(name, title, plan, points.collect(), &Plan::named(&RIVALS), |rival, point| {
        if Instant::now() > end {
            return Err(io::Error::other("the time for the whole matrix was over"));
        }
        measure(rival, &Plan { threads: point.x as usize, ..plan.clone() }, &load, None)
    })
}

/// Returns a sentence that names the points at which the load was the limit, and not the server.
fn limits(sweep: &Sweep) -> String {
    let mut limited = Vec::new();
    for (point, cells) in &sweep.rows {
        let cpus = sweep.division.with_workers(point.x as usize).server.len();
        let is_limit = |cell: &&Cell| {
            let median = |metric| cell.spread(metric).map_or(0.0, |figure| figure.median);
            let server = median(CORES) * 100.0 / cpus as f64;
            median(LOAD) >= BUSY && server < BUSY
        };
        let rivals: Vec<_> = cells.iter().filter(is_limit).map(|cell| cell.rival.as_str()).collect();
        if !rivals.is_empty() {
            limited.push(format!("{} ({})", point.x, rivals.join(", ")));
        }
    }
    if limited.is_empty() {
        return "The load was nowhere the limit.".to_owned();
    }
    format!(
        "The load was the limit (its threads were {BUSY} % busy, the server's CPUs were not) with workers: {}.",
        limited.join("; ")
    )
}

/// The combinations that are measured on a machine: these and [`RIVALS`].
#[derive(Debug)]
struct Matrix {
    workers: Vec<usize>,
    connections: Vec<usize>,
    micros: Vec<usize>,
}

impl Matrix {
    /// Leaves out what the machine cannot do.
    fn new(cpus: usize, descriptors: usize) -> Matrix {
        let workers = WORKERS.into_iter().filter(|workers| *workers <= cpus).collect();
        let mut connections = CONNECTIONS.map(|connections| connections.min(descriptors)).to_vec();
        connections.dedup();
        Matrix { workers, connections, micros: MICROS.to_vec() }
    }

    fn cells(&self) -> usize {
        self.workers.len() * self.connections.len() * self.micros.len() * RIVALS.len()
    }

    /// Returns how long all rounds take.
    fn minutes(&self, plan: &Plan) -> u64 {
        let run = |connections: &usize| {
            let load = plan.load("/", *connections);
            // Starting and ending the processes, and a connection, on a slow core.
            let around = Duration::from_millis(100) + Duration::from_micros(100) * *connections as u32;
            load.warm + load.window + around
        };
        let each: Duration = self.connections.iter().map(run).sum();
        let runs = self.workers.len() * self.micros.len() * RIVALS.len() * plan.rounds;
        (each * runs as u32).as_secs().div_ceil(60)
    }
}

/// The words of the README.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let (workers, connections) = (list(&self.workers), list(&self.connections));
        let (micros, rivals) = (list(&self.micros), RIVALS.join(", "));
        write!(f, "{workers} workers x {connections} connections x {micros} us of work x {rivals}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::rig::Run;

    /// Fails if a server that is saturated itself, or one that has no figures, counts as limited by the load.
    #[test]
    fn the_load_is_the_limit_only_if_the_server_has_time_left() {
        let division = Division::of(&plain(4), 0);
        let cell = |rival: &str, load, cpu_micros| {
            let run = Run { requests_per_second: 100_000.0, cpu_micros, load, ..Run::default() };
            Cell { rival: rival.to_owned(), runs: vec![run], absent: None }
        };
        let point = |workers: usize| Point { x: workers as f64, label: String::new() };
        let none = Cell { rival: "d".to_owned(), runs: vec![], absent: None };
        let rows = vec![
            (point(1), vec![cell("a", 95.0, 8.0), cell("b", 95.0, 9.5), cell("c", 80.0, 8.0), none]),
            (point(2), vec![cell("a", 80.0, 8.0), cell("b", 95.0, 9.5)]),
        ];
        let mut sweep = Sweep { name: String::new(), title: String::new(), division, rows };
        let said = limits(&sweep);
        assert!(said.ends_with("with workers: 1 (a); 2 (b)."), "{said}");
        sweep.rows.clear();
        assert_eq!(limits(&sweep), "The load was nowhere the limit.");
    }

    const README: &str = include_str!("../../README.md");
    const MANY: usize = 100_000;

    fn plain(count: usize) -> Vec<Vec<usize>> {
        (0..count).map(|cpu| vec![cpu]).collect()
    }

    /// Fails if the README describes another matrix, or another time, than a full run on 16 cores has.
    #[test]
    fn the_readme_has_the_matrix_and_its_time() {
        let (matrix, plan) = (Matrix::new(16, MANY), Plan::full().in_few_rounds());
        let minutes = matrix.minutes(&plan);
        assert!(Duration::from_secs(60 * minutes) < LIMIT, "{minutes} minutes");
        for text in [matrix.to_string(), format!("{} cells, {minutes} minutes", matrix.cells())] {
            assert!(README.contains(&text), "not in the README: {text}");
        }
    }

    /// Fails if the README has another table of the CPUs than a run on 16 cores prints.
    #[test]
    fn the_readme_has_the_division_of_sixteen_cores() {
        for micros in MICROS {
            let Division { server, load } = Division::of(&plain(16), micros);
            let row = format!("| {micros} us | {} | {} |", ranges(&server), ranges(&load));
            assert!(README.contains(&row), "not in the README: {row}");
        }
    }

    #[test]
    fn a_smaller_machine_gets_a_smaller_matrix() {
        let matrix = Matrix::new(2, 4_000);
        assert_eq!(
            (matrix.workers.clone(), matrix.connections.clone()),
            (vec![1, 2], vec![64, 1_000, 4_000])
        );
        assert_eq!(matrix.cells(), 72);
        assert_eq!(Matrix::new(1, 500).connections, [64, 500]);
        assert_eq!(Matrix::new(64, MANY).workers, WORKERS);
    }
}
