//! [`TaskGroup`]: the tasks that one line spawned. [`Grouping`] collects tasks into groups.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::place::SourceLine;
use crate::rounded::Rounded;
use crate::sync;

/// Tasks that one line has spawned: see [`TaskList`](crate::TaskList) and
/// [`DrainReport`](crate::DrainReport).
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().current_thread().build()?;
/// let line = line!() + 1;
/// runtime.spawn(std::future::pending::<()>()).detach();
/// runtime.block_on(async { futures_lite::future::yield_now().await });
///
/// let group = &runtime.tasks().groups[0];
/// assert_eq!((group.number, group.spawned_at.line()), (1, line));
/// assert!(group.oldest.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskGroup {
    /// Where the tasks were spawned.
    pub spawned_at: &'static Location<'static>,
    /// How many tasks there are.
    pub number: usize,
    /// The age of the oldest task. A task's age counts from the end of its first poll, which is when it had
    /// to wait for the first time, and is accurate to ten milliseconds. `None` if none of the tasks had to
    /// wait so far.
    pub oldest: Option<Duration>,
}

/// Formats as "spawned at src/main.rs:9:5, 12.3s old", with the number of tasks before it if there are
/// several.
impl fmt::Display for TaskGroup {
    /// Writes the number of tasks if there are several, their spawn line, and the age of the oldest if it is
    /// known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, oldest, .. } = self;
        let spawned_at = SourceLine(self.spawned_at);
        match (*number, oldest.map(Rounded)) {
            (1, None) => write!(f, "spawned at {spawned_at}"),
            (1, Some(age)) => write!(f, "spawned at {spawned_at}, {age} old"),
            (_, None) => write!(f, "{number} spawned at {spawned_at}"),
            (_, Some(age)) => write!(f, "{number} spawned at {spawned_at}, the oldest {age} old"),
        }
    }
}

/// A collection of tasks by spawn line, while it is filled.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    /// The number of tasks of each line, and since when the oldest is listed, on
    /// [`coarse_millis`](sync::coarse_millis).
    known: HashMap<&'static Location<'static>, (usize, Option<u64>)>,
    /// Number of tasks that have not been polled.
    pub(crate) unpolled: usize,
}

impl Grouping {
    /// Adds one task of the spawn line `spawned_at`, which has been listed since `since`; `None` if it has
    /// not had to wait.
    pub(crate) fn add(&mut self, spawned_at: &'static Location<'static>, since: Option<u64>) {
        let (number, oldest) = self.known.entry(spawned_at).or_default();
        *number += 1;
        *oldest = [*oldest, since].into_iter().flatten().min();
    }

    /// Counts one task fewer for the spawn line `spawned_at`, if it has any. The age of its oldest task
    /// stays.
    pub(crate) fn remove_one(&mut self, spawned_at: &'static Location<'static>) {
        if let Some((number, _)) = self.known.get_mut(spawned_at) {
            *number = number.saturating_sub(1);
        }
    }

    /// Returns all groups that have tasks, the largest first. Of two groups of the same size, the group with
    /// the older task comes first.
    pub(crate) fn into_groups(self) -> Vec<TaskGroup> {
        let now = sync::coarse_millis();
        let age = |since| Duration::from_millis(now.saturating_sub(since));
        let known = self.known.into_iter().filter(|(_, (number, _))| *number > 0);
        let mut groups: Vec<_> = known
            .map(|(spawned_at, (number, since))| TaskGroup { spawned_at, number, oldest: since.map(age) })
            .collect();
        groups.sort_by(|one, other| {
            let by_size = (other.number, other.oldest).cmp(&(one.number, one.oldest));
            by_size.then_with(|| one.spawned_at.cmp(other.spawned_at))
        });
        groups
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn groups_come_by_size_and_then_by_age() {
        let [one, two, three] = [Location::caller(), Location::caller(), Location::caller()];
        let now = sync::coarse_millis();
        let ago = |millis| Some(now.saturating_sub(millis));
        let mut all = Grouping::default();
        for (place, since) in
            [(one, ago(5_000)), (two, None), (two, ago(9_000)), (two, ago(1_000)), (one, ago(2_000))]
        {
            all.add(place, since);
        }
        [three, three, three].iter().for_each(|place| all.add(place, None));
        all.remove_one(three);
        let groups = all.into_groups();
        let found: Vec<_> = groups.iter().map(|group| (group.spawned_at, group.number)).collect();
        assert_eq!(found, [(two, 3), (one, 2), (three, 2)]);
        // The clock may have begun less than nine seconds ago.
        assert!(groups[0].oldest >= Some(Duration::from_millis(now.min(9_000))), "{groups:?}");
        assert_eq!(groups[2].oldest, None);
        assert_eq!(groups[2].to_string(), format!("2 spawned at {three}"));
        let alone = TaskGroup { spawned_at: one, number: 1, oldest: Some(Duration::from_millis(1_234)) };
        assert_eq!(alone.to_string(), format!("spawned at {one}, 1.2s old"));
        let several = TaskGroup { number: 4, ..alone };
        assert_eq!(several.to_string(), format!("4 spawned at {one}, the oldest 1.2s old"));
    }
}
