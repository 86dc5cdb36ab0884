//! [`JobError`]: the reason why a job gave no result.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// The reason why a [`Job`](super::Job) gave no result.
///
/// ```
/// use std::time::Duration;
/// use paceline::blocking::{Job, JobError};
///
/// let job = Job::new(|| ()).name("upload").timeout(Duration::ZERO);
/// let error = paceline::block_on(job.submit()).unwrap_err();
/// assert!(matches!(error, JobError::TimedOut { .. }));
/// let what = "the job \"upload\" was not done by its deadline, 0ns after it was submitted";
/// assert_eq!(error.to_string(), what);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// The deadline has passed. A job that had begun continues on a thread that the pool counts as lost, and
    /// its result is dropped.
    #[non_exhaustive]
    TimedOut {
        /// The job's name.
        name: String,
        /// How long the job had, from when it was submitted.
        timeout: Duration,
    },
    /// The job was cancelled, by [`JobHandle::cancel`](super::JobHandle::cancel) or because its runtime was
    /// shut down.
    #[non_exhaustive]
    Cancelled {
        /// The job's name.
        name: String,
    },
    /// The pool had no thread, and none could be started.
    #[non_exhaustive]
    NoThread {
        /// The job's name.
        name: String,
        /// The kind of the system's error.
        kind: io::ErrorKind,
    },
}

impl JobError {
    /// Returns the name of the job.
    ///
    /// ```
    /// use std::time::Duration;
    /// let job = paceline::blocking::Job::new(|| ()).name("upload").timeout(Duration::ZERO);
    /// assert_eq!(paceline::block_on(job.submit()).unwrap_err().name(), "upload");
    /// ```
    pub fn name(&self) -> &str {
        match self {
            Self::TimedOut { name, .. } | Self::Cancelled { name } | Self::NoThread { name, .. } => name,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Self::TimedOut { timeout, .. } => {
                write!(f, "the job {name:?} was not done by its deadline, {timeout:?} after it was submitted")
            }
            Self::Cancelled { .. } => write!(f, "the job {name:?} was cancelled"),
            Self::NoThread { kind, .. } => {
                write!(f, "the job {name:?} has no thread, and none can be started ({kind})")
            }
        }
    }
}

impl Error for JobError {}
