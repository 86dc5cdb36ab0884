//! [`DrainReport`], the report of a graceful end, and [`StuckThread`]. Both are plain data: the layer `end`
//! makes them, and the crew that has ended keeps the report for all callers.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::TaskGroup;
use crate::place::SourceLine;
use crate::sync::thread;

/// How many groups of cancelled tasks the sentence names.
const NAMED: usize = 5;

/// How a runtime came to its end: see [`Handle::drain`](crate::Handle::drain).
///
/// Its [`Display`](fmt::Display) is a sentence: "drained in 52ms: 9 tasks finished, 1 was cancelled
/// (spawned at src/main.rs:20:9, 51ms old), and 1 thread is stuck: paceline-1 (spawned at
/// src/main.rs:9:5)".
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(1).build()?;
/// runtime.spawn(std::future::pending::<()>()).detach();
/// let report = paceline::block_on(runtime.drain(Duration::from_millis(1)));
/// assert_eq!((report.finished, report.cancelled, report.stuck.len()), (0, 1, 0));
/// assert_eq!(report.cancelled_tasks[0].spawned_at.file(), file!());
/// println!("{report}");    // ... no task finished, 1 was cancelled (spawned at src/main.rs:6:5, 1.0ms old)
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DrainReport {
    /// Tasks that ended in time: they finished, panicked, or were cancelled by the program.
    pub finished: usize,
    /// Tasks that did not end in time and were cancelled: their futures are dropped, except those of
    /// [`undropped`](Self::undropped) tasks.
    pub cancelled: usize,
    /// The tasks that were left at the deadline, without the stuck ones, grouped by spawn line, the largest
    /// group first. Tasks that were never polled are missing here, and tasks that end at the moment of the
    /// deadline may be included.
    pub cancelled_tasks: Vec<TaskGroup>,
    /// How many of the cancelled tasks are not dropped yet, because their destructors, or others before them,
    /// block, or take more than ten seconds altogether.
    pub undropped: usize,
    /// Threads that have not stopped, and the task that keeps them. Such a task goes on until its poll ends,
    /// and is cancelled then. In a runtime of the current thread, a
    /// thread is listed once for each task, if a task waits for another one on top of it.
    pub stuck: Vec<StuckThread>,
    /// Closures that [block](crate::blocking) and had not begun at the deadline, and so never run.
    pub jobs_cancelled: usize,
    /// The names of closures that had begun and have not returned. The name of an
    /// [`unblock`](crate::unblock()) closure, or of one without a name, is the place where it was made. The
    /// runtime does not wait for these closures any more. The list includes closures with a deadline of
    /// their own that has passed before.
    pub jobs_lost: Vec<String>,
    /// How long the drain took.
    pub took: Duration,
}

/// A thread that did not stop in time: see [`StuckError`](crate::StuckError).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StuckThread {
    /// Where the task was spawned whose poll keeps the thread. `None` if a hook or a destructor does.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The name of the thread, if it has one.
    pub name: Option<String>,
    /// The thread.
    pub id: thread::ThreadId,
}

impl fmt::Display for StuckThread {
    /// Writes the thread's name and, if known, where the task that keeps it was spawned.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("(unnamed)"))?;
        self.spawned_at.map_or(Ok(()), |at| write!(f, " (spawned at {})", SourceLine(at)))
    }
}

impl DrainReport {
    /// Returns whether all tasks, and closures that block, ended in time: none was cancelled by the drain or
    /// lost, and no thread is stuck.
    pub fn is_clean(&self) -> bool {
        (self.cancelled, self.jobs_cancelled) == (0, 0) && self.stuck.is_empty() && self.jobs_lost.is_empty()
    }

    /// Returns what the sentence says of the cancelled tasks, in parentheses after a space: how many are not
    /// dropped, and the [`NAMED`] largest groups. Empty if there is nothing to say.
    fn details(&self) -> String {
        let mut details = Vec::new();
        if self.undropped > 0 {
            details.push(format!("{} of them not dropped yet", self.undropped));
        }
        let named = &self.cancelled_tasks[..self.cancelled_tasks.len().min(NAMED)];
        details.extend(named.iter().map(ToString::to_string));
        let named = named.iter().map(|group| group.number).sum::<usize>();
        if (1..self.cancelled).contains(&named) {
            details.push(format!("and {} more", self.cancelled - named));
        }
        if details.is_empty() { String::new() } else { format!(" ({})", details.join("; ")) }
    }
}

impl fmt::Display for DrainReport {
    /// Writes how long the drain took, how many tasks finished and were cancelled, and, if there are any, the
    /// jobs that never began or are lost, and the stuck threads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drained in {:.0?}: ", self.took)?;
        let mut parts = vec![counted(self.finished, "no task finished", "task finished", "tasks finished")];
        let cancelled = counted(self.cancelled, "none was cancelled", "was cancelled", "were cancelled");
        parts.push(cancelled + &self.details());
        if self.jobs_cancelled > 0 {
            parts.push(counted(self.jobs_cancelled, "", "job never began", "jobs never began"));
        }
        if !self.jobs_lost.is_empty() {
            let names = self.jobs_lost.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            parts.push(counted(self.jobs_lost.len(), "", "job is lost: ", "jobs are lost: ") + &names);
        }
        if !self.stuck.is_empty() {
            let mut threads: Vec<_> = self.stuck.iter().map(|stuck| stuck.id).collect();
            threads.dedup();
            let names = self.stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            parts.push(counted(threads.len(), "", "thread is stuck: ", "threads are stuck: ") + &names);
        }
        let last = if parts.len() > 2 { parts.pop() } else { None };
        f.write_str(&parts.join(", "))?;
        last.map_or(Ok(()), |last| write!(f, ", and {last}"))
    }
}

/// Returns `none`, `1 {one}` or `{number} {more}`.
pub(crate) fn counted(number: usize, none: &str, one: &str, more: &str) -> String {
    match number {
        0 => none.into(),
        1 => format!("1 {one}"),
        many => format!("{many} {more}"),
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn is(report: &DrainReport, text: &str) {
        assert_eq!(report.to_string(), format!("drained in 0ns: {text}"));
    }

    #[test]
    fn it_is_a_sentence() {
        let mut report = DrainReport::default();
        is(&report, "no task finished, none was cancelled");
        assert!(report.is_clean());
        (report.finished, report.cancelled) = (1, 2);
        is(&report, "1 task finished, 2 were cancelled");
        report.undropped = 1;
        is(&report, "1 task finished, 2 were cancelled (1 of them not dropped yet)");
        assert!(!report.is_clean());
        let with_jobs = DrainReport { jobs_cancelled: 1, ..DrainReport::default() };
        is(&with_jobs, "no task finished, none was cancelled, and 1 job never began");
        let lost = vec!["upload".to_string(), "from src/main.rs:3:5".to_string()];
        let with_lost = DrainReport { jobs_lost: lost, jobs_cancelled: 2, ..DrainReport::default() };
        let text = "2 jobs never began, and 2 jobs are lost: \"upload\", \"from src/main.rs:3:5\"";
        is(&with_lost, &format!("no task finished, none was cancelled, {text}"));
        assert!(!with_jobs.is_clean() && !with_lost.is_clean());
    }

    #[test]
    fn it_names_five_groups_of_what_was_cancelled_and_says_how_many_more_there_are() {
        let spawned_at = std::panic::Location::caller();
        let group = |number| TaskGroup { spawned_at, number, oldest: Some(Duration::from_secs(3)) };
        let one = DrainReport { cancelled: 1, cancelled_tasks: vec![group(1)], ..DrainReport::default() };
        is(&one, &format!("no task finished, 1 was cancelled (spawned at {spawned_at}, 3.0s old)"));
        let cancelled_tasks = [9, 5, 4, 3, 2, 1].map(group).into();
        let report = DrainReport { cancelled: 26, undropped: 2, cancelled_tasks, ..DrainReport::default() };
        let named = [9, 5, 4, 3, 2].map(|number| group(number).to_string()).join("; ");
        let text = format!("26 were cancelled (2 of them not dropped yet; {named}; and 3 more)");
        is(&report, &format!("no task finished, {text}"));
    }

    #[test]
    fn a_thread_that_is_stuck_twice_is_one_thread() {
        let here =
            StuckThread { spawned_at: None, name: Some("worker-1".into()), id: std::thread::current().id() };
        let report = DrainReport { stuck: vec![here.clone(), here], ..DrainReport::default() };
        is(&report, "no task finished, none was cancelled, and 1 thread is stuck: worker-1, worker-1");
        assert!(!report.is_clean());
    }
}
