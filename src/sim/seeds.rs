//! Runs a test under many seeds, for `#[paceline::sim]`, and explains the first that fails.

mod again;
mod explain;
mod request;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::sim::{Failed, Sim, check_run, run_once};
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
        format!("{}-{seed}.{extension}", self.name.replace("::", "-"))
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
    let (mut failed, ran) = run_all(&request, &test);
    if request.is_exploring && failed.is_empty() {
        eprintln!("{name} passes with {ran} seeds{}", request.shortfall(ran));
    }
    let Some((seed, first)) = failed.pop_first() else {
        return leave_trace(&about, &request, &test);
    };
    eprintln!("{}", explain::explain(&about, &request, seed, &first));
    if request.keeps_going {
        let listed = std::iter::once(seed).chain(failed.keys().copied()).take(LISTED_SEEDS);
        let listed: Vec<_> = listed.map(|seed| seed.to_string()).collect();
        let number = failed.len() + 1;
        let more = if number > LISTED_SEEDS { ", ..." } else { "" };
        let (listed, short) = (listed.join(", "), request.shortfall(ran));
        eprintln!("{number} of {ran} seeds of {name} fail{short}: {listed}{more}");
    }
    resume_unwind(first.panic)
}

/// If a trace is asked for, runs the last seed again, and leaves its trace.
fn leave_trace(about: &Test<'_>, request: &SeedRequest, test: impl FnOnce(&mut Sim) + Send) {
    let Some(trace) = request.trace_file(about, request.last()) else { return };
    let conditions = Conditions { trace: Some(trace), ..request.conditions() };
    let _ = run_once(request.last(), &conditions, test);
}

/// Runs all seeds on as many threads as are asked for. Returns the runs that have failed, and how many seeds
/// were run. Unless it is to go on, no seed is begun after a failure; all smaller ones are in progress by
/// then.
fn run_all(request: &SeedRequest, test: &(impl Fn(&mut Sim) + Sync)) -> (BTreeMap<u64, Box<Failed>>, u64) {
    let began = Instant::now();
    let (offset, ran) = (AtomicU64::new(0), AtomicU64::new(0));
    let stops = AtomicBool::new(false);
    let failed = Mutex::<BTreeMap<u64, Box<Failed>>>::default();
    let work = || {
        while !stops.load(Ordering::Relaxed) && request.limit.is_none_or(|limit| began.elapsed() < limit) {
            let offset = offset.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = request.seed(offset) else { return };
            let outcome = match offset {
                0 if request.plan.is_none() => check_run(seed, test).map(drop),
                _ => run_once(seed, &request.conditions(), test).map(drop),
            };
            ran.fetch_add(1, Ordering::Relaxed);
            if let Err(run) = outcome {
                stops.fetch_or(!request.keeps_going, Ordering::Relaxed);
                failed.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, run);
            }
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
    (failed.into_inner().unwrap_or_else(PoisonError::into_inner), ran.into_inner())
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
