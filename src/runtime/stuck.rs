//! [`StuckError`]: the threads that did not stop before the timeout of a shutdown.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::insight::StuckThread;

/// An error: some workers did not stop in time. See [`Runtime::shutdown`](crate::Runtime::shutdown).
///
/// Its [`Display`](fmt::Display) form is a sentence: "after 10ms these threads still ran a task: paceline-1
/// (spawned at src/main.rs:9:5)".
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, thread, time::Duration};
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(1).build()?;
/// let (begin, begun) = mpsc::channel();
/// let (end, ended) = mpsc::channel::<()>();
/// runtime.spawn(async move {
///     begin.send(()).unwrap();
///     let _ = ended.recv();
/// }).detach();
/// begun.recv().unwrap();
///
/// let error = runtime.shutdown(Duration::from_millis(10)).unwrap_err();
/// assert!(error.to_string().contains("(spawned at "));
/// for stuck in error.threads() {
///     println!("{} is stuck", stuck.name.as_deref().unwrap_or("somebody"));
/// }
/// drop(end);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StuckError {
    pub(super) threads: Vec<StuckThread>,
    pub(super) timeout: Duration,
}

impl StuckError {
    /// Returns the threads that had not stopped, at least one, and the tasks that they run.
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// # let (begin, begun) = mpsc::channel();
    /// # let (end, ended) = mpsc::channel::<()>();
    /// let line = line!() + 1;
    /// runtime.spawn(async move {
    /// #   begin.send(()).unwrap();
    ///     let _ = ended.recv();
    /// }).detach();
    /// # begun.recv().unwrap();
    /// let error = runtime.shutdown(Duration::from_millis(10)).unwrap_err();
    /// let [stuck] = error.threads() else { panic!("one worker is stuck") };
    /// assert!(stuck.name.as_deref().expect("workers have names").starts_with("paceline-"));
    /// assert_eq!(stuck.spawned_at.expect("it is in the task").line(), line);
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(&self) -> &[StuckThread] {
        &self.threads
    }

    /// Returns how long the shutdown was told to wait.
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// # let (begin, begun) = mpsc::channel();
    /// # let (end, ended) = mpsc::channel::<()>();
    /// # runtime.spawn(async move {
    /// #   begin.send(()).unwrap();
    /// #   let _ = ended.recv();
    /// # }).detach();
    /// # begun.recv().unwrap();
    /// // A task blocks.
    /// let error = runtime.shutdown(Duration::from_millis(10)).unwrap_err();
    /// assert_eq!(error.timeout(), Duration::from_millis(10));
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl fmt::Display for StuckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "after {:?} these threads still ran a task: {threads}", self.timeout)
    }
}

impl Error for StuckError {}
