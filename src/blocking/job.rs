//! [`Job`]: a closure that blocks, with a name and a deadline.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::handle::{Cancelled, JobHandle};
use super::shared::{Body, Shared};
use super::work::Work;
use crate::io::Timer;
use crate::pool::{self, ClockHeld};
use crate::sync::Instant;

/// A closure that blocks, and may never return: after its deadline everybody goes on without it.
///
/// When the deadline passes, whoever awaits the [handle](JobHandle) has [`TimedOut`](super::JobError::TimedOut), whether or not
/// the closure returns. Its thread is counted as lost (`blocking_lost` of the [`Metrics`](crate::Metrics)) and another one may have its
/// place, at once, also beyond the limit. What it returns in the end is dropped there, and the thread ends. No thread can be
/// stopped from outside in Rust: a closure that never returns keeps its thread, and what it has, until the process ends. So have it
/// look at its [token](Job::with_token) where it can.
///
/// A closure that has not begun when its deadline passes never begins, and is dropped then, with what it has captured, by the thread
/// that notices; one that is cancelled before, by whoever does that. A panic of its destructor ends there.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::blocking::{Job, JobError};
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let answer = Job::new(|| 6 * 7).name("answer").deadline(Duration::from_secs(10)).submit();
///     assert_eq!(answer.await, Ok(42));
///
///     let (forever, wait) = std::sync::mpsc::channel::<()>();
///     let stuck = Job::new(move || wait.recv()).deadline(Duration::from_millis(20)).submit();
///     assert!(matches!(stuck.await, Err(JobError::TimedOut { .. })));
///     drop(forever);
/// });
/// # Ok(())
/// # }
/// ```
#[must_use = "a job does nothing until it is submitted"]
pub struct Job<T> {
    body: Body<T>,
    name: Option<String>,
    location: &'static Location<'static>,
    until: Until,
}

/// When its deadline is.
#[derive(Clone, Copy, Debug)]
enum Until {
    Never,
    After(Duration),
    At(Instant),
}

impl<T: Send + 'static> Job<T> {
    /// A job that runs `f`, on a thread that may block. It is nameless, but for where this was called, and has no deadline.
    ///
    /// ```
    /// use paceline::blocking::Job;
    /// assert_eq!(paceline::block_on(Job::new(|| "done").submit()), Ok("done"));
    /// ```
    #[track_caller]
    pub fn new(f: impl FnOnce() -> T + Send + 'static) -> Self {
        Self::with_token(|_| f())
    }

    /// The same for an `f` that can find out whether anybody still wants what it does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::blocking::Job;
    ///
    /// let job = Job::with_token(|token| {
    ///     while !token.is_cancelled() {
    ///         std::thread::sleep(Duration::from_millis(1)); // a piece of work
    ///     }
    /// });
    /// let handle = job.deadline(Duration::from_millis(10)).submit();
    /// assert!(paceline::block_on(handle).is_err());
    /// ```
    #[track_caller]
    pub fn with_token(f: impl FnOnce(Cancelled) -> T + Send + 'static) -> Self {
        Self { body: Box::new(f), name: None, location: Location::caller(), until: Until::Never }
    }

    /// What it is called in errors.
    ///
    /// ```
    /// use paceline::blocking::Job;
    /// let handle = Job::new(|| ()).name("tidy up").submit();
    /// assert_eq!(handle.name(), "tidy up");
    /// # paceline::block_on(handle).unwrap();
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How long it may take, from [`submit`](Job::submit) to its end. With zero it never begins; with more than the clock can count it
    /// has no deadline.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::blocking::Job;
    /// let job = Job::new(|| 1).deadline(Duration::MAX);
    /// assert_eq!(paceline::block_on(job.submit()), Ok(1));
    /// ```
    pub fn deadline(mut self, after: Duration) -> Self {
        self.until = Until::After(after);
        self
    }

    /// When it is to be done. If that has passed, it never begins.
    ///
    /// ```
    /// use std::time::Instant;
    /// use paceline::blocking::Job;
    /// let job = Job::new(|| 1).deadline_at(Instant::now());
    /// assert!(paceline::block_on(job.submit()).is_err());
    /// ```
    pub fn deadline_at(mut self, at: Instant) -> Self {
        self.until = Until::At(at);
        self
    }

    /// Has it run on a thread of the runtime whose thread or task this is, else of the process, as soon as one is free.
    ///
    /// Where a runtime is shut down, what is submitted is [`Cancelled`](super::JobError::Cancelled).
    ///
    /// # Panics
    ///
    /// If `PACELINE_BLOCKING_THREADS` is not a positive number, and this is the first call that needs it; and as
    /// [`Timer`] does if the job has a deadline.
    pub fn submit(self) -> JobHandle<T> {
        let Self { body, name, location, until } = self;
        let (at, deadline) = match until {
            Until::Never => (None, Duration::MAX),
            Until::After(after) => (pool::now().checked_add(after), after),
            Until::At(at) => (Some(at), at.saturating_duration_since(pool::now())),
        };
        let threads = super::current();
        let shared = Shared::new(body, name, location, deadline, threads.clone());
        if let Some(at) = at {
            // First, so that it is there to be taken away when the job is done.
            shared.watch(Timer::at(at));
        }
        // One whose deadline has passed needs nobody.
        let needed = shared
            .answer()
            .is_none()
            .then(|| threads.submit(Work::Errand(shared.clone(), ClockHeld::here())));
        let no_thread = needed.and_then(Result::err).map(|error| error.kind());
        JobHandle::new(shared, no_thread)
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.name).field("until", &self.until).finish_non_exhaustive()
    }
}
