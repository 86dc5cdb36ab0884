//! What is printed of a seed that fails.
//!
//! The seed is run again in other processes, with fewer and fewer of its faults and of its choices among
//! ready tasks, as long as it fails in the same way. So the page that is printed has little that does not
//! matter.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use super::super::plan::{Plan, PlannedPicks};
use super::super::run::{Failed, text_of};
use super::super::shrink::shrink;
use super::super::story::cut;
use super::super::trace_file;
use super::Test;
use super::again::{Again, Came, PLAN_EXTENSION, Rerun};
use super::request::{PLAN_VARIABLE, SEED_VARIABLE, SeedRequest};

/// For how long faults are left out.
const TIME: Duration = Duration::from_secs(20);
/// The least time for a run.
const TIME_OF_A_RUN: Duration = Duration::from_secs(2);
/// Upper bound of the lines of a panic's message.
const MOST_LINES: usize = 6;

/// Returns the explanation of a run that has failed.
pub(super) fn explain(test: &Test<'_>, request: &SeedRequest, seed: u64, failed: &Failed) -> String {
    let command = command(test, seed);
    // A limit of time may end this process before the page is ready.
    eprintln!("seed {seed} of {} fails, and is run again with fewer faults ({command})", test.name);
    let (shown, about, files) = match reduce(test, request, seed, failed) {
        Ok(reduced) => (reduced.run, reduced.about, reduced.files),
        Err(why) => (Again::new(failed, String::new()), why, String::new()),
    };
    let headline = headline(test, seed, &shown);
    format!("{headline}\n{about}\n\n{}\nTo run it again:\n\n    {command}\n{files}", shown.page)
}

fn headline(Test { name, .. }: &Test<'_>, seed: u64, run: &Again) -> String {
    let (message, place) = run.panic.clone().unwrap_or_default();
    let mut lines: Vec<_> = message.lines().take(MOST_LINES).map(cut).collect();
    if message.lines().count() > MOST_LINES {
        lines.push("...".into());
    }
    let at = if place.is_empty() { String::new() } else { format!(" (at {place})") };
    let (seconds, node, message) = (run.at.as_secs_f64(), &run.node, lines.join("\n"));
    format!(
        "{name} fails with seed {seed}, {seconds:.6} s after its start, on the node {node}: {message}{at}\n"
    )
}

/// Returns the command that runs the seed alone.
fn command(test: &Test<'_>, seed: u64) -> String {
    let is_ignored = env::args().any(|argument| matches!(&*argument, "--ignored" | "--include-ignored"));
    let ignored = if is_ignored { " --include-ignored" } else { "" };
    format!("{SEED_VARIABLE}={seed} cargo test -p {} {} -- --exact{ignored}", test.package, test.path())
}

/// What a page shows in place of the whole run.
struct Reduced {
    run: Again,
    /// Sentences about what was left out.
    about: String,
    /// Sentences about the files that the run has left.
    files: String,
}

/// Leaves out faults, and then choices of the order. Returns the reason if the run cannot be repeated.
fn reduce(test: &Test<'_>, request: &SeedRequest, seed: u64, failed: &Failed) -> Result<Reduced, String> {
    let mut search = Search::begin(test, request, seed, failed)?;
    let all_faults = search.whole.faults.clone();
    if search.fails(all_faults.iter().cloned().collect(), PlannedPicks::All) == Some(false) {
        return Err("It was not run with fewer faults: in another process, those of these names do not make it fail in \
                    the same way."
            .into());
    }
    let faults = shrink(&all_faults, |part| search.fails(part.iter().cloned().collect(), PlannedPicks::All));
    let faults: BTreeSet<_> = faults.into_iter().collect();
    let all_picks = search.smallest.picks.clone();
    let picks = shrink(&all_picks, |part| {
        search.fails(faults.clone(), PlannedPicks::Only(part.iter().copied().collect()))
    });
    let about = search.about([all_faults.len(), faults.len()], [all_picks.len(), picks.len()]);
    // If none can be left out, the list may not have all of them.
    let picks = match picks.len() == all_picks.len() {
        true => PlannedPicks::All,
        false => PlannedPicks::Only(picks.into_iter().collect()),
    };
    let files = search.leave_files(&Plan { faults, picks }, request);
    Ok(Reduced { run: search.smallest, about, files })
}

/// The search for a small run.
struct Search<'a> {
    runner: Rerun<'a>,
    began: Instant,
    limit: Duration,
    /// The run with all faults.
    whole: Again,
    /// The last one that fails as the whole one does.
    smallest: Again,
    /// Whether the time was too short to leave out all that could be.
    is_cut: bool,
    /// What has the faults of the whole run: the seed, or a plan that was asked for.
    origin: &'static str,
}

impl<'a> Search<'a> {
    fn begin(test: &'a Test<'a>, request: &SeedRequest, seed: u64, failed: &Failed) -> Result<Self, String> {
        let not_again = |why: &str| format!("It was not run again to leave out faults: {why}.");
        let error = |error: io::Error| not_again(&error.to_string());
        let runner = Rerun::new(test, seed).map_err(error)?;
        let began = Instant::now();
        let whole = match runner.run(request.plan.as_deref(), None, TIME).map_err(error)? {
            Came::Result(whole) => whole,
            Came::TooLate => return Err(not_again(&format!("one run takes more than {TIME:?}"))),
            Came::Nothing(status) => {
                let why = "perhaps it does not run this test alone if its path is the argument";
                return Err(not_again(&format!("the test program ended without a result ({status}); {why}")));
            }
        };
        if !whole.has_message(text_of(&*failed.panic)) {
            let what = if whole.panic.is_none() { "passes" } else { "fails in another way" };
            return Err(format!(
                "Run again in another process, the seed {what}. So something decides that is not the simulation's, perhaps \
                 a `static` that an earlier run has left changed."
            ));
        }
        let limit = (began.elapsed() * 5).max(TIME_OF_A_RUN);
        let origin = if request.plan.is_some() { "plan" } else { "seed" };
        Ok(Self { runner, began, limit, smallest: whole.clone(), whole, is_cut: false, origin })
    }

    /// Returns whether the test fails with these faults alone as it does with all; `None` when the time is
    /// over.
    fn fails(&mut self, faults: BTreeSet<String>, picks: PlannedPicks) -> Option<bool> {
        let left = TIME.saturating_sub(self.began.elapsed());
        self.is_cut = left.is_zero();
        if self.is_cut {
            return None;
        }
        match self.runner.run(Some(&Plan { faults, picks }), None, self.limit.min(left)).ok()? {
            Came::Result(run) if run.is_like(&self.whole) => {
                self.smallest = run;
                Some(true)
            }
            _ => Some(false),
        }
    }

    /// Tells how much was left out of `[all, left]` faults and choices.
    fn about(&self, [faults, left]: [usize; 2], [choices, picks]: [usize; 2]) -> String {
        let origin = self.origin;
        let faults = match left {
            _ if faults == 0 => format!("This {origin} has no faults."),
            0 => format!("This run has none of the {origin}'s {faults} faults, and fails in the same way."),
            left if left == faults && self.is_cut => format!("This run has all faults of the {origin}."),
            left if left == faults => {
                format!("This run has all faults of the {origin}. With fewer, it does not fail in this way.")
            }
            left => {
                format!(
                    "This run has {left} of the {origin}'s {faults} faults alone, and fails in the same way."
                )
            }
        };
        let picks = match picks {
            _ if choices == 0 => String::new(),
            0 => " Its ready tasks are polled first in, first out.".into(),
            picks => format!(
                " At {picks} of its polls (before, at {choices}), another task is polled than the one that was ready for \
                 longest."
            ),
        };
        let cut = match self.is_cut {
            true => format!(" Perhaps fewer are enough: the search was over after {TIME:?}."),
            false => String::new(),
        };
        format!("{faults}{picks}{cut}")
    }

    /// Leaves the plan and the trace of the smallest run in files, and tells where.
    fn leave_files(&self, plan: &Plan, request: &SeedRequest) -> String {
        let trace = request.trace_file(self.runner.test, self.runner.seed);
        let trace = trace.unwrap_or_else(|| self.runner.file(trace_file::EXTENSION));
        let plan_file = self.runner.file(PLAN_EXTENSION);
        let told = match fs::write(&plan_file, plan.to_string()) {
            Ok(()) => {
                format!(
                    "To run what is shown here alone, put {PLAN_VARIABLE}={} before it.",
                    plan_file.display()
                )
            }
            Err(error) => format!("Its plan cannot be written to {}: {error}.", plan_file.display()),
        };
        // The file is made here, because the errors of the other process are not seen.
        let made = File::create(&trace).and_then(|_| self.runner.run(Some(plan), Some(&trace), self.limit));
        let traced = match made {
            Ok(Came::Result(_)) => {
                format!("The trace of that run is in {}, for https://ui.perfetto.dev.", trace.display())
            }
            Ok(_) => "There is no trace, because that run was not over in time.".into(),
            Err(error) => trace_file::error(&trace, &error),
        };
        format!("\n{told}\n{traced}\n")
    }
}
