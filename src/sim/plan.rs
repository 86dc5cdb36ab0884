//! [`Faults`]: the faults of a run, each of which has a name, and [`Plan`]: which of them happen.
//!
//! A fault is a crash, a partition, a hold, a lost packet, what a crash loses of a file or of all entries, an
//! error of a disk, or a `buggify!` that is true. Each place that may cause one asks here before it
//! does, and names the fault. A run without a plan has all of its faults, and notes their names. A run
//! with a plan has only those that the plan lists, so a run with fewer faults may be tried. What the
//! seed decides is drawn in either case. But the program does other things then, and a packet that is
//! not lost draws its latency, so the names of later faults may belong to other moments.
//!
//! The order of the tasks is reduced in the same way: see [`PlannedPicks`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Upper bound of the names that a run notes. Those that come later are in no plan.
pub(super) const MOST_NOTED: usize = 10_000;

/// Which of the faults of a seed happen, and which of its choices among ready tasks count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) faults: BTreeSet<String>,
    pub(super) picks: PlannedPicks,
}

/// At which polls the order of the simulation chooses a task. At the others, the task is polled that has been
/// ready for longest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PlannedPicks {
    #[default]
    All,
    /// The polls, counted from 1.
    Only(BTreeSet<u64>),
}

impl PlannedPicks {
    pub(super) fn has(&self, poll: u64) -> bool {
        match self {
            PlannedPicks::All => true,
            PlannedPicks::Only(polls) => polls.contains(&poll),
        }
    }
}

/// The faults of a run so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// `None`: all faults happen.
    plan: Option<BTreeSet<String>>,
    /// How many faults of a kind there were, also of those that the plan has left out.
    counts: BTreeMap<String, u64>,
    /// The names of those that have happened.
    pub(super) happened: Vec<String>,
}

impl Faults {
    pub(super) fn new(plan: Option<&Plan>) -> Self {
        Self { plan: plan.map(|plan| plan.faults.clone()), ..Self::default() }
    }

    /// Returns whether the next fault of that kind happens.
    pub(super) fn happens(&mut self, kind: impl fmt::Display) -> bool {
        let kind = kind.to_string();
        let count = self.counts.entry(kind.clone()).or_default();
        *count += 1;
        let name = format!("{kind} {count}");
        let happens = self.plan.as_ref().is_none_or(|plan| plan.contains(&name));
        if happens && self.happened.len() < MOST_NOTED {
            self.happened.push(name);
        }
        happens
    }
}

/// How a line of a file begins that lists a poll.
const PICK: &str = "pick ";
/// The line that says that all polls count.
const ALL_PICKS: &str = "all picks";
/// How a line begins that lists a fault.
const FAULT: &str = "fault ";

impl fmt::Display for Plan {
    /// Writes the plan as a file, with a line for each fault and for each poll.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{FAULT}{fault}")?;
        }
        match &self.picks {
            PlannedPicks::All => writeln!(f, "{ALL_PICKS}"),
            PlannedPicks::Only(polls) => polls.iter().try_for_each(|poll| writeln!(f, "{PICK}{poll}")),
        }
    }
}

impl Plan {
    /// Reads what [`Display`](fmt::Display) has written. Returns the line that is no part of a plan.
    pub(super) fn parse(text: &str) -> Result<Self, &str> {
        let (mut faults, mut polls, mut is_all) = (BTreeSet::new(), BTreeSet::new(), false);
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(fault) = line.strip_prefix(FAULT) {
                faults.insert(fault.to_owned());
            } else if let Some(poll) = line.strip_prefix(PICK) {
                polls.insert(poll.parse().map_err(|_| line)?);
            } else if line == ALL_PICKS {
                is_all = true;
            } else {
                return Err(line);
            }
        }
        let picks = if is_all { PlannedPicks::All } else { PlannedPicks::Only(polls) };
        Ok(Self { faults, picks })
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counted_by_their_kind_also_those_that_do_not_happen() {
        let plan = Plan { faults: BTreeSet::from(["loss a>b 2".to_owned()]), ..Plan::default() };
        let (mut all, mut some) = (Faults::default(), Faults::new(Some(&plan)));
        let kinds = ["loss a>b", "crash a", "loss a>b", "loss a>b"];
        assert_eq!(kinds.map(|kind| all.happens(kind)), [true; 4]);
        assert_eq!(all.happened, ["loss a>b 1", "crash a 1", "loss a>b 2", "loss a>b 3"]);
        assert_eq!(kinds.map(|kind| some.happens(kind)), [false, false, true, false]);
        assert_eq!(some.happened, ["loss a>b 2"]);
    }

    #[test]
    fn a_plan_is_what_its_file_says() {
        let faults = BTreeSet::from(["crash n 1".to_owned(), "loss a b>c 12".to_owned()]);
        for picks in [PlannedPicks::All, PlannedPicks::Only(BTreeSet::from([3, 70]))] {
            let plan = Plan { faults: faults.clone(), picks };
            assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
        }
        assert_eq!(Plan::parse("pick x"), Err("pick x"));
        assert_eq!(Plan::parse("fault a 1\nnonsense"), Err("nonsense"));
    }
}
