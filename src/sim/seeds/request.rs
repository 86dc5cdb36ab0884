//! [`SeedRequest`]: what the environment asks of the tests of `#[paceline::sim]`.
//!
//! | variable | asks for |
//! |---|---|
//! | `PACELINE_SEED` | this seed alone |
//! | `PACELINE_SEEDS` | so many seeds, or a range of them |
//! | `PACELINE_JOBS` | so many runs at a time; the default is one for each core |
//! | `PACELINE_TIME_LIMIT` | seconds after which no run begins |
//! | `PACELINE_KEEP_GOING` | the other seeds after one that has failed, too |
//! | `PACELINE_TRACE` | the trace in this file, or in a file in this folder |
//! | `PACELINE_PLAN` | the faults alone that this file lists, which a failure has left |

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::num::NonZero;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::super::plan::Plan;

pub(super) const SEED_VARIABLE: &str = "PACELINE_SEED";
const SEEDS: &str = "PACELINE_SEEDS";
const JOBS: &str = "PACELINE_JOBS";
const TIME_LIMIT: &str = "PACELINE_TIME_LIMIT";
const KEEP_GOING: &str = "PACELINE_KEEP_GOING";
pub(super) const TRACE_VARIABLE: &str = "PACELINE_TRACE";
pub(super) const PLAN_VARIABLE: &str = "PACELINE_PLAN";
/// For a test that is run by another process of this crate: the file for what comes out.
pub(super) const RESULT_VARIABLE: &str = "PACELINE_SIM_RESULT";

/// What is asked of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SeedRequest {
    first: u64,
    /// The number of seeds. It is no range, because the last seed of all may be asked for.
    count: u64,
    jobs: Option<NonZero<usize>>,
    pub(super) limit: Option<Duration>,
    pub(super) keeps_going: bool,
    /// Whether the number of seeds, or the time for them, is asked for.
    pub(super) is_exploring: bool,
    pub(super) trace: Option<PathBuf>,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) result: Option<PathBuf>,
}

impl SeedRequest {
    pub(super) fn of_environment(seeds: u64) -> Result<Self, String> {
        Self::new(seeds, &Variables(&|name| env::var_os(name)))
    }

    /// Reads the variables. Returns an error that says which one is wrong, and what it should be.
    fn new(seeds: u64, variables: &Variables<'_>) -> Result<Self, String> {
        let seed = variables.read(SEED_VARIABLE, "a seed, a number", |text| text.parse::<u64>().ok())?;
        let what = "a number of seeds, as 500, or a range of them, as 500..1000";
        let many = variables.read(SEEDS, what, read_seeds)?;
        let (first, count) = match (seed, &many) {
            (Some(_), Some(_)) => {
                return Err(format!("{SEED_VARIABLE} and {SEEDS} are both set; set one of them"));
            }
            (Some(seed), None) => (seed, 1),
            (None, Some(many)) => (many.start, many.end - many.start),
            (None, None) => (0, seeds),
        };
        let jobs = variables.read(JOBS, "a number of threads, 1 or more", |text| text.parse().ok())?;
        let what = "a number of seconds";
        let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
        let limit = variables.read(TIME_LIMIT, what, seconds)?;
        let yes = |text: &str| match text {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        };
        let keeps_going = variables.read(KEEP_GOING, "1 or 0", yes)?.unwrap_or(false);
        Ok(Self {
            first,
            count,
            jobs,
            limit,
            keeps_going,
            is_exploring: many.is_some() || limit.is_some(),
            trace: variables.get(TRACE_VARIABLE).map(Into::into),
            plan: variables.get(PLAN_VARIABLE).map(|path| read_plan(&path)).transpose()?.map(Arc::new),
            result: variables.get(RESULT_VARIABLE).map(Into::into),
        })
    }

    /// Returns the seed that is run after so many others; `None` after the last one.
    pub(super) fn seed(&self, offset: u64) -> Option<u64> {
        (offset < self.count).then(|| self.first + offset)
    }

    /// Returns the last seed.
    pub(super) fn last(&self) -> u64 {
        self.first + (self.count - 1)
    }

    /// Returns how many seeds are run at a time.
    pub(super) fn jobs(&self) -> usize {
        let jobs = self.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
        jobs.min(self.count.try_into().unwrap_or(usize::MAX))
    }

    /// Returns what to add to the number of seeds that were run, if the time was too short for all.
    pub(super) fn shortfall(&self, ran: u64) -> String {
        match self.limit {
            Some(limit) if ran < self.count => format!(" of {} in {limit:?}", self.count),
            _ => String::new(),
        }
    }
}

struct Variables<'a>(&'a dyn Fn(&str) -> Option<OsString>);

impl Variables<'_> {
    /// Returns the value of a variable. One that is empty is as good as none.
    fn get(&self, name: &str) -> Option<OsString> {
        self.0(name).filter(|value| !value.is_empty())
    }

    fn read<T>(&self, name: &str, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let read = value.to_str().and_then(read);
        read.map(Some).ok_or_else(|| format!("{name} is {value:?}; it should be {what}"))
    }
}

/// Reads a number of seeds, or a range of them that is not empty.
fn read_seeds(text: &str) -> Option<Range<u64>> {
    let seeds = match text.split_once("..") {
        Some((first, end)) => first.trim().parse().ok()?..end.trim().parse().ok()?,
        None => 0..text.parse().ok()?,
    };
    (!seeds.is_empty()).then_some(seeds)
}

fn read_plan(path: &OsStr) -> Result<Plan, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("{PLAN_VARIABLE} is {path:?}, which cannot be read: {error}"))?;
    Plan::parse(&text).map_err(|line| {
        format!("{PLAN_VARIABLE} is {path:?}, which is no plan that a failure has left: {line:?}")
    })
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn request(variables: &[(&str, &str)]) -> Result<SeedRequest, String> {
        let find = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| value.into());
        SeedRequest::new(100, &Variables(&find))
    }

    fn seeds(variables: &[(&str, &str)]) -> (u64, u64) {
        let request = request(variables).unwrap();
        assert_eq!(request.seed(request.count), None);
        assert_eq!(request.seed(request.count - 1), Some(request.last()));
        (request.seed(0).unwrap(), request.last())
    }

    #[test]
    fn the_seeds_are_those_of_the_test_or_those_that_are_asked_for() {
        assert_eq!(seeds(&[]), (0, 99));
        assert_eq!(seeds(&[("PACELINE_SEED", "18446744073709551615")]), (u64::MAX, u64::MAX));
        assert_eq!(seeds(&[("PACELINE_SEEDS", "7")]), (0, 6));
        assert_eq!(seeds(&[("PACELINE_SEEDS", "7..9"), ("PACELINE_SEED", "")]), (7, 8));
    }

    #[test]
    fn a_wrong_value_is_an_error_that_says_what_it_should_be() {
        for (name, value, what) in [
            ("PACELINE_SEED", "seven", "it should be a seed"),
            ("PACELINE_SEEDS", "9..7", "or a range of them, as 500..1000"),
            ("PACELINE_SEEDS", "0", "a number of seeds, as 500"),
            ("PACELINE_SEEDS", "1..2..3", "a number of seeds"),
            ("PACELINE_JOBS", "0", "1 or more"),
            ("PACELINE_TIME_LIMIT", "1m", "a number of seconds"),
            ("PACELINE_TIME_LIMIT", "-1", "a number of seconds"),
            ("PACELINE_KEEP_GOING", "yes", "1 or 0"),
            ("PACELINE_PLAN", "/no/such/file", "cannot be read"),
        ] {
            let error = request(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(&format!("{name} is {value:?}")) && error.contains(what), "{error}");
        }
        let both = request(&[("PACELINE_SEED", "1"), ("PACELINE_SEEDS", "2")]).unwrap_err();
        assert_eq!(both, "PACELINE_SEED and PACELINE_SEEDS are both set; set one of them");
    }

    #[test]
    fn no_more_runs_are_in_progress_than_there_are_seeds() {
        let jobs = |variables: &[_]| request(variables).unwrap().jobs();
        assert_eq!(jobs(&[("PACELINE_JOBS", "8")]), 8);
        assert_eq!(jobs(&[("PACELINE_JOBS", "8"), ("PACELINE_SEEDS", "3")]), 3);
        assert_eq!(jobs(&[("PACELINE_SEED", "3")]), 1);
    }

    #[test]
    fn seeds_that_the_time_was_too_short_for_are_told_of() {
        let request = request(&[("PACELINE_TIME_LIMIT", "1.5")]).unwrap();
        assert_eq!(request.shortfall(9), " of 100 in 1.5s");
        assert_eq!(request.shortfall(100), "");
    }
}
