//! [`JobHandle`], by which a job is awaited; [`Cancelled`], by which a job finds out that it need not go on.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::error::JobError;
use super::shared::{Shared, Wanted};
use super::state::Answer;

/// A job that was submitted: a future of what it returns, or of why it does not.
///
/// Awaiting it raises a panic of the job. Dropping it cancels the job, as it does with a [`Task`](crate::Task): one that has not begun
/// never begins, one that runs is told by its token, and what it returns is dropped. Its deadline holds all the same.
/// [`detach`](JobHandle::detach) lets it run.
///
/// # Cancel safety
///
/// Polling it by reference and going on later loses nothing.
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
    /// `None` once it has answered, or was detached.
    shared: Option<Arc<Shared<T>>>,
    no_thread: Option<io::ErrorKind>,
}

impl<T: Send + 'static> JobHandle<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, no_thread: Option<io::ErrorKind>) -> Self {
        Self { shared: Some(shared), no_thread }
    }

    /// Cancels the job: whoever awaits the handle has [`JobError::Cancelled`] at once, unless there is another answer already.
    ///
    /// A job that has not begun never begins, and its closure is dropped here. One that runs is told by its token, if it looks; it keeps
    /// its thread until it returns or its deadline passes, and what it returns is dropped.
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

    /// Lets the job run on its own; its deadline holds all the same. What it returns is dropped by its thread, and so is its panic.
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

    /// Whether there is an answer: awaiting it does not wait.
    ///
    /// ```
    /// let handle = paceline::blocking::Job::new(|| ()).submit();
    /// handle.cancel();
    /// assert!(handle.is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.answer().is_some())
    }

    /// The job's name; if it has none, where it was made. Empty once the handle has been awaited.
    ///
    /// ```
    /// let handle = paceline::blocking::Job::new(|| ()).submit();
    /// assert!(handle.name().starts_with("from "));
    /// # paceline::block_on(handle).unwrap();
    /// ```
    pub fn name(&self) -> String {
        self.shared.as_ref().map_or(String::new(), |shared| shared.name())
    }

    /// # Panics
    ///
    /// If the job did.
    fn answer(&mut self, answer: Answer) -> Result<T, JobError> {
        let shared = self.shared.take().expect("it was not polled after it was done");
        match (answer, self.no_thread) {
            (Answer::Done, _) => {
                // SAFETY: the state gives it to the handle, and this is the only one, which is done with it now.
                let outcome = unsafe { shared.take_result() }.expect("nobody else takes it");
                Ok(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
            }
            (Answer::Cancelled, Some(kind)) => Err(JobError::NoThread { name: shared.name(), kind }),
            _ => Err(shared.error(answer == Answer::TimedOut)),
        }
    }
}

impl<T: Send + 'static> Future for JobHandle<T> {
    type Output = Result<T, JobError>;

    /// # Panics
    ///
    /// If the job did, or if it is polled after it was done.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared.as_ref().expect("a `JobHandle` is not to be polled after it was done");
        let answer = shared.answer().or_else(|| {
            shared.is_awaited_by(cx.waker());
            // Who had one meanwhile did not see the waker, perhaps.
            shared.answer()
        });
        answer.map_or(Poll::Pending, |answer| Poll::Ready(self.answer(answer)))
    }
}

impl<T: Send + 'static> Drop for JobHandle<T> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if !shared.cancel() {
            drop_result(&shared);
        }
    }
}

/// The handle goes, and was too late to say so.
fn drop_result<T: Send + 'static>(shared: &Shared<T>) {
    if shared.answer() == Some(Answer::Done) {
        // SAFETY: the state gives it to the handle, and this is the only one.
        drop(unsafe { shared.take_result() });
    }
}

impl<T: Send + 'static> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobHandle").field(&self.shared).finish()
    }
}

/// What a job looks at to find out whether anybody still wants what it does: see [`Job::with_token`](super::Job::with_token).
#[derive(Clone)]
pub struct Cancelled(Arc<dyn Wanted>);

impl Cancelled {
    pub(super) fn new(job: Arc<dyn Wanted>) -> Self {
        Self(job)
    }

    /// Whether the job may as well return: its deadline has passed, it was cancelled, its handle was dropped, or its runtime was shut
    /// down.
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

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancelled").field(&self.is_cancelled()).finish()
    }
}
