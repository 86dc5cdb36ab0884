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
    /// Tasks that had not, and were cancelled: their futures are dropped.
    pub cancelled: usize,
    /// Threads that are still in a task, and which: it goes on until its poll ends, and is cancelled then.
    pub stuck: Vec<StuckThread>,
    /// How long it took.
    pub took: Duration,
}

impl Drained {
    /// Whether all tasks came to their end in time.
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
        self.cancelled == 0 && self.stuck.is_empty()
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drained in {:.0?}: ", self.took)?;
        match self.finished {
            0 => write!(f, "no task finished")?,
            1 => write!(f, "1 task finished")?,
            many => write!(f, "{many} tasks finished")?,
        }
        let and = if self.stuck.is_empty() { "" } else { " and" };
        match self.cancelled {
            0 => write!(f, ", none was cancelled")?,
            1 => write!(f, ", 1 was cancelled")?,
            many => write!(f, ", {many} were cancelled")?,
        }
        match self.stuck.len() {
            0 => {}
            1 => write!(f, ",{and} 1 thread is stuck:")?,
            many => write!(f, ",{and} {many} threads are stuck:")?,
        }
        for (number, stuck) in self.stuck.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma} {stuck}")?;
        }
        Ok(())
    }
}
