//! Runs a test under many seeds, for `#[paceline::sim]`, and explains the first that fails.

mod again;
mod explain;
mod request;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::run::{Failed, check_run, run_once};
use super::sim::Sim;
use super::simulation::Conditions;
use super::trace_file;
use request::SeedRequest;

/// Upper bound of the failing seeds that are listed.
const LISTED_SEEDS: usize = 50;

/// A test of `#[paceline::sim]`.
#[derive(Clone, Copy, Debug)]
struct Test<'a> {
    package: &'a str,
    /// The path of its function, with the crate.
    name: &'a str,
}

impl Test<'_> {
    /// Returns the name of a file for what a seed leaves.
    fn file_name(&self, seed: u64, extension: &str) -> String {
        format!("{}-{}-{seed}.{extension}", self.package, self.name.replace("::", "-"))
    }

    /// Returns the path that the test binary filters by: without the crate, which is that binary.
    fn path(&self) -> &str {
        self.name.split_once("::").map_or(self.name, |(_, path)| path)
    }
}

/// Runs `test` under the seeds 0 to `seeds` - 1, or as the environment asks. The first of them
/// runs [twice](super::check). Each run is on a new thread. `name` is the path of the test, with its crate,
/// in `package`.
///
/// # Panics
///
/// If there are no seeds, or if a run panics. Then an explanation of the run with the smallest seed is
/// printed before.
pub fn run_seeds(seeds: u64, package: &str, name: &str, test: impl Fn(&mut Sim) + Sync) {
    let about = Test { package, name };
    assert!(seeds > 0, "{name} has no seeds: it would test nothing");
    let request = SeedRequest::of_environment(seeds).unwrap_or_else(|error| panic!("{error}"));
    if let Some(result) = &request.result {
        return again::run_for_parent(&request, result, test);
    }
    let SeedRuns { seeds, failed, first } = run_all(&request, &test);
    let short = request.shortfall(seeds);
    if request.is_exploring && failed.is_empty() {
        eprintln!("{name} passes with {seeds} seeds{short}");
    }
    let Some((seed, first)) = first else { return leave_trace(&about, &request, &test) };
    eprintln!("{}", explain::explain(&about, &request, seed, &first));
    if request.keeps_going {
        let listed: Vec<_> = failed.iter().take(LISTED_SEEDS).map(u64::to_string).collect();
        let more = if failed.len() > LISTED_SEEDS { ", ..." } else { "" };
        eprintln!("{} of {seeds} seeds of {name} fail{short}: {}{more}", failed.len(), listed.join(", "));
    }
    resume_unwind(first.panic)
}

/// If a trace is asked for, runs the last seed again, and leaves its trace.
fn leave_trace(about: &Test<'_>, request: &SeedRequest, test: impl FnOnce(&mut Sim) + Send) {
    let Some(trace) = request.trace_file(about, request.last()) else { return };
    let conditions = Conditions { trace: Some(trace), ..request.conditions() };
    let _ = run_once(request.last(), &conditions, test);
}

/// What came out of all seeds.
#[derive(Default)]
struct SeedRuns {
    /// How many were run.
    seeds: u64,
    failed: BTreeSet<u64>,
    /// The run with the smallest seed that failed.
    first: Option<(u64, Box<Failed>)>,
}

impl SeedRuns {
    fn add(&mut self, seed: u64, outcome: Result<(), Box<Failed>>) {
        self.seeds += 1;
        if let Err(run) = outcome {
            self.failed.insert(seed);
            if self.first.as_ref().is_none_or(|(first, _)| seed < *first) {
                self.first = Some((seed, run));
            }
        }
    }
}

/// Runs all seeds on as many threads as are asked for. Unless it is to go on, no seed is begun after a
/// failure; all smaller ones are in progress by then. The first seed is run whatever the time limit is.
fn run_all(request: &SeedRequest, test: &(impl Fn(&mut Sim) + Sync)) -> SeedRuns {
    let began = Instant::now();
    let (next, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    let ran = Mutex::<SeedRuns>::default();
    let work = || {
        while !stops.load(Ordering::Relaxed) {
            let offset = next.fetch_add(1, Ordering::Relaxed);
            if offset > 0 && request.limit.is_some_and(|limit| began.elapsed() >= limit) {
                return;
            }
            let Some(seed) = request.seed(offset) else { return };
            let outcome = match offset {
                0 if request.plan.is_none() => check_run(seed, test).map(drop),
                _ => run_once(seed, &request.conditions(), test).map(drop),
            };
            stops.fetch_or(outcome.is_err() && !request.keeps_going, Ordering::Relaxed);
            ran.lock().unwrap_or_else(PoisonError::into_inner).add(seed, outcome);
        }
    };
    let name = thread::current().name().unwrap_or("simulation").to_owned();
    thread::scope(|scope| {
        for _ in 1..request.jobs() {
            // With fewer threads it takes longer.
            let _ = thread::Builder::new().name(name.clone()).spawn_scoped(scope, work);
        }
        work();
    });
    ran.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl SeedRequest {
    /// Returns the file for the trace of a seed, if one is asked for.
    fn trace_file(&self, test: &Test<'_>, seed: u64) -> Option<PathBuf> {
        let asked = self.trace.as_ref()?;
        let name = test.file_name(seed, trace_file::EXTENSION);
        Some(if asked.is_dir() { asked.join(name) } else { asked.clone() })
    }

    fn conditions(&self) -> Conditions {
        Conditions { plan: self.plan.clone(), ..Conditions::default() }
    }
}
