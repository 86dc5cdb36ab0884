//! [`JobHandle`]: a future of the result of a job.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::error::JobError;
use super::shared::SharedJob;
use super::state::Answer;
use crate::waking;

/// A submitted job: a future of its result, or of the reason why there is none.
///
/// A panic of the job resumes where the handle is awaited. Dropping the handle cancels the job, as with a
/// [`Task`](crate::Task): a job that has not begun never begins, a running job learns by its token, and its
/// result is dropped. The deadline still holds. [`detach`](JobHandle::detach) lets the job run.
///
/// # Cancel safety
///
/// Polling the handle by reference and continuing later loses nothing.
///
/// # Examples
///
/// ```
/// use paceline::blocking::Job;
/// let handle = Job::new(|| 6 * 7).submit();
/// assert_eq!(paceline::block_on(handle), Ok(42));
/// ```
#[must_use = "a job is cancelled when its handle is dropped: await it, or `.detach()` it"]
pub struct JobHandle<T: Send + 'static> {
    /// `None` once the handle has answered, or was detached.
    shared: Option<Arc<SharedJob<T>>>,
    /// The kind of the error, if the job was cancelled because no thread could be started.
    no_thread: Option<io::ErrorKind>,
}

impl<T: Send + 'static> JobHandle<T> {
    pub(super) fn new(shared: Arc<SharedJob<T>>, no_thread: Option<io::ErrorKind>) -> Self {
        Self { shared: Some(shared), no_thread }
    }

    /// Cancels the job: awaiting the handle gives [`JobError::Cancelled`] at once, unless there is another
    /// answer already.
    ///
    /// A job that has not begun never begins, and its closure is dropped here. A running job learns by its
    /// token, if it asks; the job keeps its thread until it returns or its deadline passes, and its result is
    /// dropped.
    ///
    /// ```
    /// use paceline::blocking::{Job, JobError};
    /// let handle = Job::with_token(|token| while !token.is_cancelled() {}).submit();
    /// handle.cancel();
    /// assert!(matches!(paceline::block_on(handle), Err(JobError::Cancelled { .. })));
    /// ```
    pub fn cancel(&self) {
        if let Some(shared) = &self.shared {
            shared.cancel();
        }
    }

    /// Lets the job run on its own. Its deadline still holds. The result is dropped by the job's thread, and
    /// so is a panic.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let (tell, told) = mpsc::channel();
    /// paceline::blocking::Job::new(move || tell.send(1)).submit().detach();
    /// assert_eq!(told.recv(), Ok(1));
    /// ```
    pub fn detach(mut self) {
        let Some(shared) = self.shared.take() else { return };
        if !shared.detach() {
            drop_result(&shared);
        }
    }

    /// Returns whether there is an answer: then awaiting the handle does not wait.
    ///
    /// ```
    /// let handle = paceline::blocking::Job::new(|| ()).submit();
    /// handle.cancel();
    /// assert!(handle.is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.answer().is_some())
    }

    /// Returns the job's name, or where the job was made if it has no name. Empty once the handle has been
    /// awaited.
    ///
    /// ```
    /// let handle = paceline::blocking::Job::new(|| ()).submit();
    /// assert!(handle.name().starts_with("from "));
    /// # paceline::block_on(handle).unwrap();
    /// ```
    pub fn name(&self) -> String {
        self.shared.as_ref().map_or(String::new(), |shared| shared.name())
    }

    /// Returns the result, or the error that the answer stands for. Called once, because the result is taken.
    ///
    /// # Panics
    ///
    /// Panics if the job did.
    fn answer(&mut self, answer: Answer) -> Result<T, JobError> {
        let shared = self.shared.take().expect("it was not polled after it was done");
        match (answer, self.no_thread) {
            (Answer::Done, _) => {
                // SAFETY: the answer `Done` gives the result to the handle. There is one handle, and it gives
                // its reference up here.
                let outcome = unsafe { shared.take_result() }.expect("only the handle takes it");
                Ok(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
            }
            (Answer::Cancelled, Some(kind)) => Err(JobError::NoThread { name: shared.name(), kind }),
            (Answer::Cancelled, None) => Err(JobError::Cancelled { name: shared.name() }),
            (Answer::TimedOut, _) => Err(JobError::TimedOut { name: shared.name(), timeout: shared.timeout }),
        }
    }
}

impl<T: Send + 'static> Future for JobHandle<T> {
    type Output = Result<T, JobError>;

    /// Returns the result or the error once there is one.
    ///
    /// # Panics
    ///
    /// Panics if the job did, or if the handle is polled after it was done.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared.as_ref().expect("a `JobHandle` is not to be polled after it was done");
        let answer = shared.answer().or_else(|| {
            shared.store_waker(cx.waker());
            // A thread that made an answer meanwhile may not have seen the waker.
            shared.answer()
        });
        answer.map_or(Poll::Pending, |answer| Poll::Ready(self.answer(answer)))
    }
}

impl<T: Send + 'static> Drop for JobHandle<T> {
    /// Cancels the job, or drops its result if it is over.
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if !shared.cancel() {
            drop_result(&shared);
        }
    }
}

/// Drops the result, or the panic, if the job was over before the handle could cancel or detach it.
fn drop_result<T: Send + 'static>(shared: &SharedJob<T>) {
    if shared.answer() == Some(Answer::Done) {
        // SAFETY: the answer `Done` gives the result to the handle, and this is the only handle.
        match unsafe { shared.take_result() } {
            Some(Err(panic)) => waking::discard_payload(panic),
            result => drop(result),
        }
    }
}

impl<T: Send + 'static> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobHandle").field(&self.shared).finish()
    }
}
