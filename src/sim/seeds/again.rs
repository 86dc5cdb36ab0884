//! Runs a test again with one seed, in a process of its own, as the command does that a failure prints.
//!
//! What the program prints there is not seen, an abort ends that process alone, and what an earlier run has
//! left in the process does not matter. The other process is the test binary itself, which is told by
//! [`RESULT_VARIABLE`] where to write what comes out.

use std::env;
use std::fs;
use std::io;
use std::panic::{self, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::plan::Plan;
use super::super::run::{Failed, run_once, text_of};
use super::super::sim::Sim;
use super::super::simulation::Conditions;
use super::Test;
use super::request::{PLAN_VARIABLE, RESULT_VARIABLE, SEED_VARIABLE, SeedRequest, TRACE_VARIABLE};

/// What the run of another process came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    /// The message of the panic, and the line that panicked; `None` if the run has passed.
    pub(super) panic: Option<(String, String)>,
    pub(super) at: Duration,
    pub(super) node: String,
    pub(super) page: String,
    pub(super) faults: Vec<String>,
    pub(super) picks: Vec<u64>,
}

/// That of the file with the plan of the last run.
pub(super) const PLAN_EXTENSION: &str = "plan";

/// Separates the parts of a result.
const SEPARATOR: char = '\0';

impl Again {
    pub(super) fn new(failed: &Failed, place: String) -> Self {
        let Failed { panic, story, faults, picks, .. } = failed;
        Self {
            panic: Some((text_of(&**panic).to_owned(), place)),
            at: story.at,
            node: story.node.clone(),
            page: story.page.clone(),
            faults: faults.clone(),
            picks: picks.clone(),
        }
    }

    /// Returns whether the message of this run's panic is that one. Numbers may differ.
    pub(super) fn has_message(&self, other: &str) -> bool {
        self.panic.as_ref().is_some_and(|(text, _)| without_numbers(text) == without_numbers(other))
    }

    /// Returns whether a run fails as this one does. Numbers in the message may differ.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let of = |run: &Self| run.panic.as_ref().map(|(text, place)| (without_numbers(text), place.clone()));
        of(self) == of(other)
    }

    fn to_text(&self) -> String {
        let Self { panic, at, node, page, faults, picks } = self;
        let Some((message, place)) = panic else { return String::new() };
        let picks: Vec<_> = picks.iter().map(u64::to_string).collect();
        let at = at.as_nanos().to_string();
        let parts = [message, place, &at, node, page, &faults.join("\n"), &picks.join(" ")];
        parts.map(|part| part.replace(SEPARATOR, " ")).join(&SEPARATOR.to_string())
    }

    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let parts: Vec<&str> = text.split(SEPARATOR).collect();
        let [message, place, at, node, page, faults, picks] = parts[..] else { return None };
        Some(Self {
            panic: Some((message.into(), place.into())),
            at: Duration::from_nanos(at.parse().ok()?),
            node: node.into(),
            page: page.into(),
            faults: faults.lines().map(str::to_owned).collect(),
            picks: picks.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?,
        })
    }
}

fn without_numbers(text: &str) -> String {
    let mut all = String::new();
    for letter in text.chars().filter(|letter| *letter != '.') {
        match letter.is_ascii_digit() {
            true if all.ends_with('0') => {}
            true => all.push('0'),
            false => all.push(letter),
        }
    }
    all
}

/// Runs a test with one seed in other processes.
#[derive(Debug)]
pub(super) struct Rerun<'a> {
    pub(super) test: &'a Test<'a>,
    pub(super) seed: u64,
    program: PathBuf,
    /// For files.
    folder: PathBuf,
}

/// What came out of a process.
pub(super) enum Came {
    Result(Again),
    /// The process was ended, because it took too long.
    TooLate,
    /// The process has ended without a result.
    Nothing(ExitStatus),
}

impl<'a> Rerun<'a> {
    pub(super) fn new(test: &'a Test<'a>, seed: u64) -> io::Result<Self> {
        if cfg!(miri) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let program = env::current_exe()?;
        let folder = folder_of(&program);
        fs::create_dir_all(&folder)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
        Ok(Self { test, seed, program, folder })
    }

    /// Returns the path of a file that is left for this test and seed.
    pub(super) fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(self.test.file_name(self.seed, extension))
    }

    /// Runs the test with these faults alone.
    pub(super) fn run(&self, plan: Option<&Plan>, trace: Option<&Path>, limit: Duration) -> io::Result<Came> {
        // Another process may search for the same test and seed.
        let own = |extension: &str| self.file(&format!("{}.{extension}", process::id()));
        let (result, plan_file) = (own("result"), own(PLAN_EXTENSION));
        let mut command = Command::new(&self.program);
        command.args([self.test.path(), "--exact", "--include-ignored"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env(SEED_VARIABLE, self.seed.to_string()).env(RESULT_VARIABLE, &result);
        command.env_remove("PACELINE_SEEDS").env_remove(TRACE_VARIABLE).env_remove(PLAN_VARIABLE);
        if let Some(plan) = plan {
            fs::write(&plan_file, plan.to_string())?;
            command.env(PLAN_VARIABLE, &plan_file);
        }
        if let Some(trace) = trace {
            command.env(TRACE_VARIABLE, trace);
        }
        let status = wait(command.spawn()?, limit)?;
        let text = fs::read_to_string(&result).ok();
        [result, plan_file].into_iter().for_each(|file| _ = fs::remove_file(file));
        Ok(match (status, text.as_deref().and_then(Again::parse)) {
            (None, _) => Came::TooLate,
            (Some(_), Some(again)) => Came::Result(again),
            (Some(status), None) => Came::Nothing(status),
        })
    }
}

/// Returns the folder for files of a test program: `sim` in Cargo's folder for what it builds.
fn folder_of(program: &Path) -> PathBuf {
    // As `target/debug/deps/name-0123`.
    let deps = program.parent().filter(|folder| folder.ends_with("deps"));
    let target = deps.and_then(|deps| deps.parent()?.parent());
    target.map_or_else(|| env::temp_dir().join("paceline-sim"), |target| target.join("sim"))
}

/// Waits for a process. Ends it after `limit`, and then returns `None`.
fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    const PAUSE: Duration = Duration::from_millis(2);
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

/// Runs the test for the process that has started this one, and writes what comes out to `result`.
pub(super) fn run_for_parent(request: &SeedRequest, result: &Path, test: impl Fn(&mut Sim) + Sync) {
    /// The messages of all panics, and their places.
    static PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
    let panics = || PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        panics().push((text_of(info.payload()).to_owned(), place));
    }));
    let seed = request.last();
    let conditions = Conditions { trace: request.trace.clone(), ..request.conditions() };
    let (again, panic) = match run_once(seed, &conditions, &test) {
        Ok(_) => (Again::default(), None),
        Err(failed) => {
            // Destructors may panic after the failure, and a failure of the simulation is no panic yet.
            let place = panics()
                .iter()
                .rfind(|(text, _)| *text == text_of(&*failed.panic))
                .map(|(_, place)| place.clone());
            (Again::new(&failed, place.unwrap_or_default()), Some(failed.panic))
        }
    };
    if let Err(error) = fs::write(result, again.to_text()) {
        panic!("{} cannot be written: {error}", result.display());
    }
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn failed(message: &str) -> Again {
        Again {
            panic: Some((message.into(), "src/main.rs:1:2".into())),
            at: Duration::from_millis(1500),
            node: "shop".into(),
            page: "  1.5  shop  crashes\n".into(),
            faults: vec!["crash shop 1".into(), "loss a>b 2".into()],
            picks: vec![3, 70],
        }
    }

    #[test]
    fn a_result_is_what_was_written() {
        for again in [
            Again::default(),
            failed("order 12 is missing\nthere"),
            Again { picks: Vec::new(), ..failed("") },
        ] {
            assert_eq!(Again::parse(&again.to_text()), Some(again));
        }
        assert_eq!(Again::parse("half a result"), None);
    }

    #[test]
    fn a_failure_is_alike_if_only_its_numbers_differ() {
        assert!(failed("order 12 took 1.5s").is_like(&failed("order 7 took 12s")));
        assert!(!failed("order 12 is missing").is_like(&failed("order 12 is there twice")));
        assert!(!failed("order 12 is missing").is_like(&Again::default()));
        let elsewhere = Again { panic: Some(("order 12".into(), "src/main.rs:9:2".into())), ..failed("") };
        assert!(!failed("order 12").is_like(&elsewhere));
    }
}
