//! [`TaskList`]: the unfinished tasks of a runtime, for people to read.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::Handle;
use crate::executor::{StateRef, TaskPoll};
use crate::insight::{Grouping, TaskGroup, counted};
use crate::place::SourceLine;
use crate::pool::{Pool, Station};
use crate::rounded::Rounded;

/// The unfinished tasks of a runtime, grouped by the lines that spawned them: see [`Handle::tasks`].
///
/// Its [`Display`](fmt::Display) form is a table:
///
/// ```text
/// 1007 tasks
///   number   oldest  spawned at
///     1000    12.3s  src/main.rs:9:5
///        2    1.2ms  src/main.rs:20:9
///        1        -  src/main.rs:31:5
///        4        -  (not polled yet)
///  running  waiting  closures that block
///        1        0  from src/main.rs:40:13
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskList {
    /// Tasks that were polled, or are being polled, by spawn line: the largest group first. Of two groups of
    /// the same size, the one with the older task is first.
    pub groups: Vec<TaskGroup>,
    /// Tasks that were spawned and not polled so far: their spawn lines are not known.
    pub unpolled: usize,
    /// Closures that [block](crate::blocking) and have not returned.
    pub closures: Vec<ClosureGroup>,
    /// Whether some tasks are not listed: those of a [`StaticExecutor`](crate::StaticExecutor) that runs in
    /// the runtime, which does not track its tasks.
    pub is_partial: bool,
}

/// Closures that [block](crate::blocking) and have the same name: see [`TaskList`].
///
/// ```
/// use paceline::blocking::Job;
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(1).build()?;
/// let (end, ended) = std::sync::mpsc::channel::<()>();
/// let entered = runtime.handle().enter();
/// let waits = Job::new(move || drop(ended.recv())).name("waits").submit();
/// assert_eq!(runtime.tasks().closures[0].name, "waits");
/// drop(end);
/// # drop((waits, entered));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosureGroup {
    /// The name of the [`Job`](crate::blocking::Job). For a job without a name, and for
    /// [`unblock`](crate::unblock()), where it was made: "from src/main.rs:9:5".
    pub name: String,
    /// The number of closures that run.
    pub running: usize,
    /// The number of closures that wait for a thread.
    pub waiting: usize,
}

impl TaskList {
    /// Returns the tasks of the pool, and its closures that block, grouped by name: the largest group first.
    fn of(pool: &Pool) -> Self {
        let (mut all, mut is_partial) = (Grouping::default(), false);
        for (state, polled) in pool.executors() {
            state.list_tasks(&polled, &mut all);
            is_partial |= state.unfinished().is_none();
        }
        let (unpolled, groups) = (all.unpolled, all.into_groups());
        let mut named = BTreeMap::<String, (usize, usize)>::new();
        for (name, runs) in pool.blocking_if_any().map_or(Vec::new(), |threads| threads.unfinished()) {
            let (running, waiting) = named.entry(name).or_default();
            *(if runs { running } else { waiting }) += 1;
        }
        let group = |(name, (running, waiting))| ClosureGroup { name, running, waiting };
        let mut closures: Vec<_> = named.into_iter().map(group).collect();
        closures.sort_by_key(|group| Reverse(group.running + group.waiting));
        Self { groups, unpolled, closures, is_partial }
    }

    /// Returns the number of tasks, of all lines together. The [closures](Self::closures) are not counted.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// runtime.spawn(std::future::pending::<()>()).detach();
    /// assert_eq!(runtime.tasks().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.number).sum::<usize>() + self.unpolled
    }

    /// Returns whether there is no task.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// assert!(paceline::Runtime::builder().threads(1).build()?.tasks().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.len(), "no tasks", "task", "tasks"))?;
        if self.is_partial {
            f.write_str(" that are tracked (those of a `StaticExecutor` are not)")?;
        }
        if !self.is_empty() {
            write!(f, "\n{:>8} {:>8}  spawned at", "number", "oldest")?;
        }
        for TaskGroup { spawned_at, number, oldest } in &self.groups {
            let age = oldest.map_or_else(|| "-".into(), |oldest| Rounded(oldest).to_string());
            write!(f, "\n{number:>8} {age:>8}  {}", SourceLine(spawned_at))?;
        }
        if self.unpolled > 0 {
            write!(f, "\n{:>8} {:>8}  (not polled yet)", self.unpolled, "-")?;
        }
        if !self.closures.is_empty() {
            write!(f, "\n{:>8} {:>8}  closures that block", "running", "waiting")?;
        }
        for ClosureGroup { name, running, waiting } in &self.closures {
            write!(f, "\n{running:>8} {waiting:>8}  {name}")?;
        }
        Ok(())
    }
}

impl Handle {
    /// Returns the tasks that are not finished, grouped by the lines that spawned them, with their number and
    /// the age of the oldest: to find tasks that leak, or wait for each other. Closures that
    /// [block](crate::blocking) are listed beside them.
    ///
    /// Tasks of an [`Executor`](crate::Executor) or [`LocalExecutor`](crate::LocalExecutor) are included
    /// while it runs in a `block_on` of this runtime. The future of such a `block_on` is not a task;
    /// [`threads`](Handle::threads) has it.
    ///
    /// This may be called at any time and from any thread, also while the runtime shuts down or drains. The
    /// threads go on meanwhile, so the numbers are close, but not a snapshot. A task that is in its first
    /// poll has no age, and one that was not polled so far has no line. A call takes some tens of nanoseconds
    /// for each task. Tasks pay nothing for it except a coarse clock that is read when a task has to wait for
    /// the first time. The list is empty once the runtime was dropped.
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use paceline::Timer;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().current_thread().build()?;
    /// let line = line!() + 2;
    /// for _ in 0..3 {
    ///     runtime.spawn(pending::<()>()).detach();    // leaks
    /// }
    /// runtime.block_on(async { Timer::after(Duration::from_millis(20)).await });
    ///
    /// let tasks = runtime.tasks();
    /// println!("{tasks}");
    /// assert_eq!((tasks.groups[0].number, tasks.groups[0].spawned_at.line()), (3, line));
    /// # Ok(())
    /// # }
    /// ```
    pub fn tasks(&self) -> TaskList {
        self.pool().map_or_else(TaskList::default, |pool| TaskList::of(&pool))
    }
}

/// A task that is being polled: what its waker points to, and where it was spawned.
type PolledTask = (usize, &'static Location<'static>);

impl Pool {
    /// Returns the executors of the crew and of this pool's `block_on`s, with the tasks that are polled
    /// there.
    pub(crate) fn executors(&self) -> Vec<(StateRef, Vec<PolledTask>)> {
        let mut executors: Vec<_> =
            self.crew().map(|crew| (crew.state.clone(), Vec::new())).into_iter().collect();
        self.stations().iter().for_each(|station| add_hosted(station, &mut executors));
        executors
    }
}

/// Adds the executors that run in this `block_on`, each one once, and the tasks that are polled there.
fn add_hosted(station: &Arc<Station>, executors: &mut Vec<(StateRef, Vec<PolledTask>)>) {
    for hosted in station.runners.lock().iter() {
        let known = executors.iter().position(|(state, _)| std::ptr::eq(&**state, &*hosted.state));
        let at = known.unwrap_or_else(|| {
            executors.push((hosted.state.clone(), Vec::new()));
            executors.len() - 1
        });
        if let Some(TaskPoll { task, spawned_at: Some(spawned_at), .. }) = hosted.runner.poll.task_poll() {
            executors[at].1.push((task, spawned_at));
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_is_a_table() {
        let empty = TaskList::default();
        assert_eq!(empty.to_string(), "no tasks");
        let partial = TaskList { is_partial: true, ..empty.clone() };
        assert_eq!(partial.to_string(), "no tasks that are tracked (those of a `StaticExecutor` are not)");
        let place = Location::caller();
        let group = |number, oldest| TaskGroup { spawned_at: place, number, oldest };
        let closure = ClosureGroup { name: "upload".into(), running: 1, waiting: 2 };
        let tasks = TaskList {
            groups: vec![group(1000, Some(Duration::from_millis(12_345))), group(1, None)],
            unpolled: 4,
            closures: vec![closure],
            is_partial: false,
        };
        let text = format!(
            "1005 tasks\n  number   oldest  spawned at\n    1000    12.3s  {place}\n       1        -  {place}\n       4        -  \
             (not polled yet)\n running  waiting  closures that block\n       1        2  upload"
        );
        assert_eq!(tasks.to_string(), text);
    }
}
