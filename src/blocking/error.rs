//! [`JobError`]: why a job gave no result.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Why a [`Job`](super::Job) gave no result.
///
/// ```
/// use std::time::Duration;
/// use paceline::blocking::{Job, JobError};
///
/// let job = Job::new(|| ()).name("upload").deadline(Duration::ZERO);
/// let error = paceline::block_on(job.submit()).unwrap_err();
/// assert!(matches!(error, JobError::TimedOut { .. }));
/// assert_eq!(error.to_string(), "the job \"upload\" was not done by its deadline, 0ns after it was submitted");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// Its deadline has passed. If it had begun, it goes on, on a thread that the pool counts as lost; what it returns is dropped.
    #[non_exhaustive]
    TimedOut {
        /// The job's name.
        name: String,
        /// What its deadline was, counted from when it was submitted.
        deadline: Duration,
    },
    /// It was cancelled, by [`JobHandle::cancel`](super::JobHandle::cancel) or because its runtime was shut down.
    #[non_exhaustive]
    Cancelled {
        /// The job's name.
        name: String,
    },
    /// There was no thread in the pool, and none could be started.
    #[non_exhaustive]
    NoThread {
        /// The job's name.
        name: String,
        /// Of what kind the system's error was.
        kind: io::ErrorKind,
    },
}

impl JobError {
    /// The name of the job.
    ///
    /// ```
    /// use std::time::Duration;
    /// let job = paceline::blocking::Job::new(|| ()).name("upload").deadline(Duration::ZERO);
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
            Self::TimedOut { deadline, .. } => {
                write!(
                    f,
                    "the job {name:?} was not done by its deadline, {deadline:?} after it was submitted"
                )
            }
            Self::Cancelled { .. } => write!(f, "the job {name:?} was cancelled"),
            Self::NoThread { kind, .. } => {
                write!(f, "the job {name:?} has no thread, and none can be started ({kind})")
            }
        }
    }
}

impl Error for JobError {}
