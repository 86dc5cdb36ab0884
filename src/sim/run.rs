//! [`check`]: runs of a whole test, each on a thread of its own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use super::events::{CheckRun, FirstRun};
use super::report::Report;
use super::sim::Sim;
use super::simulation::Conditions;
use super::story::Story;
use super::trace_file;
use crate::waking;

/// Runs a simulation twice with the same seed, and fails unless both runs do the same. Returns the report,
/// which is that of either run.
///
/// ```
/// use std::time::Duration;
/// use paceline::{Timer, sim};
///
/// sim::check(7, |sim| {
///     let mut rng = sim.rng();
///     sim.spawn(async move {
///         for _ in 0..100 {
///             Timer::after(Duration::from_millis(rng.below(50))).await;
///         }
///     })
///     .detach();
///     sim.run_for(Duration::from_secs(10));
/// });
/// ```
///
/// Each run is on a new thread, with new thread-locals; `RUST_MIN_STACK` sets the size of its stack. The
/// events of the first run are kept in memory, in 24 bytes each.
///
/// # Panics
///
/// If `run` panics; if a thread cannot be started; and if the runs differ, also in when they end, and in what
/// the destructors of the tasks that are left then do. Then the message has the seed, and the first event
/// that differs: its time, what happened in either run, and the spawn lines of the tasks.
#[track_caller]
pub fn check(seed: u64, run: impl FnMut(&mut Sim) + Send) -> Report {
    check_run(seed, run).unwrap_or_else(|failed| {
        // Fails if standard error is closed.
        waking::call(|| eprint!("the simulation with seed {seed} fails\n{}", failed.story.page));
        let Failed { panic, is_printed, .. } = *failed;
        match panic.downcast::<String>() {
            Ok(text) if !is_printed => panic!("{text}"),
            Ok(text) => resume_unwind(text),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Does what [`check`] does, and returns the run that has failed.
pub(super) fn check_run(seed: u64, mut run: impl FnMut(&mut Sim) + Send) -> Result<Report, Box<Failed>> {
    let conditions = |check| Conditions { check, ..Conditions::default() };
    let (report, recording) = run_once(seed, &conditions(CheckRun::First), &mut run)?;
    let recording = recording.expect("the first run is recorded");
    run_once(seed, &conditions(CheckRun::Second(Arc::new(recording))), run)?;
    Ok(report)
}

/// A run that has failed.
pub(super) struct Failed {
    pub(super) panic: Box<dyn Any + Send>,
    /// Whether there was a panic, whose message was printed.
    is_printed: bool,
    pub(super) story: Story,
    /// The names of its faults.
    pub(super) faults: Vec<String>,
    /// The polls at which its order did not choose the task that was ready for longest.
    pub(super) picks: Vec<u64>,
}

/// Runs a simulation on a new thread. Returns its report, and the recording of the first run of a check.
#[track_caller]
pub(super) fn run_once(
    seed: u64,
    conditions: &Conditions,
    run: impl FnOnce(&mut Sim) + Send,
) -> Result<(Report, Option<FirstRun>), Box<Failed>> {
    on_new_thread(|| {
        let mut sim = Sim::begin(seed, conditions);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut sim)));
        let report = sim.report();
        let story = outcome.as_ref().err().map(|panic| sim.simulation.story(text_of(&**panic)));
        if let Some(path) = &conditions.trace {
            trace_file::write(&sim.simulation, path);
        }
        sim.cancel_tasks();
        let (recording, failure) = sim.simulation.end_reported();
        let (panic, is_printed): (Box<dyn Any + Send>, _) = match (outcome, failure) {
            (Ok(()), None) => {
                drop(sim);
                return Ok((report, recording));
            }
            (Err(panic), Some(failure)) if panic.downcast_ref() == Some(&failure) => (panic, true),
            (_, Some(failure)) => (Box::new(failure), false),
            (Err(panic), None) => (panic, true),
        };
        let story = story.unwrap_or_else(|| sim.simulation.story(text_of(&*panic)));
        let faults = sim.simulation.faults().happened.clone();
        let picks = sim.simulation.state().choices.picked.clone();
        Err(Box::new(Failed { panic, is_printed, story, faults, picks }))
    })
}

/// Returns the message of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// Calls `run` on a new thread of the same name, where all thread-locals, also the keys of the standard
/// library's hash maps, have their first values. If `run` panics, so does this call.
#[track_caller]
fn on_new_thread<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    let name = thread::current().name().unwrap_or("simulation").into();
    thread::scope(|scope| {
        let started = thread::Builder::new().name(name).spawn_scoped(scope, run);
        match started.expect("a thread for the simulation can be started").join() {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    })
}
