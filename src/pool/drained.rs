//! [`Drained`]: what is said of the graceful end of a runtime.

use std::fmt;
use std::time::Duration;

use super::StuckThread;

/// How a runtime came to its end: see [`Runtime::drain`](crate::Runtime::drain).
///
/// Its [`Display`](fmt::Display) is a sentence: "drained in 52ms: 9 tasks finished, 1 was cancelled, and 1 thread is stuck:
/// paceline-1 (spawned at src/main.rs:9:5)".
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
/// assert!(report.to_string().ends_with("no task finished, 1 was cancelled"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Tasks that came to their end in time: done, failed, or cancelled by whoever had them.
    pub finished: usize,
    /// Tasks that had not, and were cancelled: their futures are dropped, but for those that are `undropped`.
    pub cancelled: usize,
    /// So many of these are behind destructors that block, or that take more than ten seconds altogether.
    pub undropped: usize,
    /// Threads that are still in a task, or in its destructor, and which: it goes on until that ends, and is cancelled then. A thread is
    /// there once for each task, if one waits for another on top of it.
    pub stuck: Vec<StuckThread>,
    /// Closures that [block](crate::blocking) and had not begun at the deadline: they never do.
    pub jobs_cancelled: usize,
    /// Those that had, and have not returned, by their names; that of [`unblock`](crate::unblock()), and of one without a name, is where it was
    /// made. Nobody waits for them any more. Among them are those whose own deadline has passed before.
    pub jobs_lost: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Drained {
    /// Whether all tasks, and closures that block, came to their end in time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// runtime.spawn(async {}).detach();
    /// assert!(paceline::block_on(runtime.drain(Duration::from_secs(5))).is_clean());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_clean(&self) -> bool {
        let Self { finished: _, cancelled, undropped: _, stuck, jobs_cancelled, jobs_lost, took: _ } = self;
        (*cancelled, *jobs_cancelled) == (0, 0) && stuck.is_empty() && jobs_lost.is_empty()
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drained in {:.0?}: ", self.took)?;
        let mut parts = vec![many(self.finished, "no task finished", "task finished", "tasks finished")];
        let undropped = match self.undropped {
            0 => String::new(),
            many => format!(" ({many} of them not dropped yet)"),
        };
        parts
            .push(many(self.cancelled, "none was cancelled", "was cancelled", "were cancelled") + &undropped);
        if self.jobs_cancelled > 0 {
            parts.push(many(self.jobs_cancelled, "", "job never began", "jobs never began"));
        }
        if !self.jobs_lost.is_empty() {
            let names = self.jobs_lost.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            parts.push(many(self.jobs_lost.len(), "", "job is lost: ", "jobs are lost: ") + &names);
        }
        if !self.stuck.is_empty() {
            let mut threads: Vec<_> = self.stuck.iter().map(|stuck| stuck.id).collect();
            threads.dedup();
            let names = self.stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            parts.push(many(threads.len(), "", "thread is stuck: ", "threads are stuck: ") + &names);
        }
        let last = if parts.len() > 2 { parts.pop() } else { None };
        f.write_str(&parts.join(", "))?;
        last.map_or(Ok(()), |last| write!(f, ", and {last}"))
    }
}

fn many(number: usize, none: &str, one: &str, more: &str) -> String {
    match number {
        0 => none.into(),
        1 => format!("1 {one}"),
        many => format!("{many} {more}"),
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn is(report: &Drained, text: &str) {
        assert_eq!(report.to_string(), format!("drained in 0ns: {text}"));
    }

    #[test]
    fn it_is_a_sentence() {
        let mut report = Drained::default();
        is(&report, "no task finished, none was cancelled");
        assert!(report.is_clean());
        (report.finished, report.cancelled) = (1, 2);
        is(&report, "1 task finished, 2 were cancelled");
        report.undropped = 1;
        is(&report, "1 task finished, 2 were cancelled (1 of them not dropped yet)");
        assert!(!report.is_clean());
        let with_jobs = Drained { jobs_cancelled: 1, ..Drained::default() };
        is(&with_jobs, "no task finished, none was cancelled, and 1 job never began");
        let lost = vec!["upload".to_string(), "from src/main.rs:3:5".to_string()];
        let with_lost = Drained { jobs_lost: lost, jobs_cancelled: 2, ..Drained::default() };
        let text = "2 jobs never began, and 2 jobs are lost: \"upload\", \"from src/main.rs:3:5\"";
        is(&with_lost, &format!("no task finished, none was cancelled, {text}"));
        assert!(!with_jobs.is_clean() && !with_lost.is_clean());
    }

    #[test]
    fn a_thread_that_is_stuck_twice_is_one_thread() {
        let here =
            StuckThread { spawned_at: None, name: Some("worker-1".into()), id: std::thread::current().id() };
        let report = Drained { stuck: vec![here.clone(), here], ..Drained::default() };
        is(&report, "no task finished, none was cancelled, and 1 thread is stuck: worker-1, worker-1");
        assert!(!report.is_clean());
    }
}
