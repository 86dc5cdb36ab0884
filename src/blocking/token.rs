//! [`CancelToken`]: the token by which a job learns that it need not continue.

use std::fmt;
use std::sync::Arc;

/// The job that a token asks.
pub(super) trait Wanted: Send + Sync {
    /// Returns whether the job need not continue.
    fn is_cancelled(&self) -> bool;
}

/// A token by which a job checks whether its result is still wanted: see
/// [`Job::with_token`](super::Job::with_token).
#[derive(Clone)]
pub struct CancelToken(Arc<dyn Wanted>);

impl CancelToken {
    pub(super) fn new(job: Arc<dyn Wanted>) -> Self {
        Self(job)
    }

    /// Returns whether the job may as well return: its deadline has passed, it was cancelled, its handle was
    /// dropped, or its runtime was shut down.
    ///
    /// ```
    /// use paceline::blocking::Job;
    /// let wanted = Job::with_token(|token| !token.is_cancelled()).submit();
    /// assert_eq!(paceline::block_on(wanted), Ok(true));
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken").field(&self.is_cancelled()).finish()
    }
}
