//! Runs a test under many seeds, for `#[paceline::sim]`.

use std::any::Any;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::sim::{Sim, check, on_new_thread};
use super::trace_file::TraceFile;

/// The variable with the only seed to run.
const VARIABLE: &str = "PACELINE_SEED";

/// The variable with the path of the file for the trace of each run, which replaces that of the run before.
const TRACE_VARIABLE: &str = "PACELINE_TRACE";

/// Runs `test` under the seeds 0 to `seeds` - 1, or under the one in `PACELINE_SEED` if that is set. The
/// first of them runs [twice](check). Each run is on a new thread. If `PACELINE_TRACE` is set, the last run
/// leaves its trace in the file of that name. `name` is the path of the test, with its crate, in `package`.
///
/// # Panics
///
/// If there are no seeds, or if a run panics. Then the seed and the command that runs it again are printed
/// before.
pub fn run_seeds(seeds: u64, package: &str, name: &str, test: impl Fn(&mut Sim) + Sync) {
    let only = env::var_os(VARIABLE).map(|text| {
        let seed = text.to_str().and_then(|text| text.parse().ok());
        seed.unwrap_or_else(|| panic!("{VARIABLE} is {text:?}; it should be a seed, a number"))
    });
    assert!(seeds > 0, "{name} has no seeds: it would test nothing");
    let all = only.map_or(0..=seeds - 1, |seed: u64| seed..=seed);
    let first = *all.start();
    let test = |sim: &mut Sim| {
        let _file = env::var_os(TRACE_VARIABLE).map(|path| TraceFile::begin(path.into()));
        test(sim);
    };
    for seed in all {
        let run = || match seed == first {
            true => drop(check(seed, test)),
            false => on_new_thread(|| test(&mut Sim::new(seed))),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            // Without the crate: that is the test binary, and not in the path that the binary filters by.
            let path = name.split_once("::").map_or(name, |(_, path)| path);
            eprintln!(
                "{name} fails with seed {seed}: {}\nTo run it again:\n\n    \
                 {VARIABLE}={seed} cargo test -p {package} {path} -- --exact\n\n\
                 With {TRACE_VARIABLE}=sim.pftrace before it, the run leaves a trace in that file, for https://ui.perfetto.dev.\n",
                text_of(&*panic).unwrap_or("a panic without a message")
            );
            resume_unwind(panic);
        }
    }
}

/// Returns the message of a panic; `None` if its payload is no text.
fn text_of(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}
