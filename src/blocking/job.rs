//! [`Job`]: a blocking closure with a name and a deadline.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::handle::JobHandle;
use super::shared::{Body, SharedJob};
use super::token::CancelToken;
use crate::blocking_threads::Work;
use crate::io::Timer;
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool;
use crate::sync::Instant;

/// A closure that blocks, and may never return: after its deadline the program continues without it.
///
/// When the deadline passes, awaiting the [handle](JobHandle) gives [`TimedOut`](super::JobError::TimedOut),
/// whether or not the closure returns. Its thread is counted as lost (`blocking_lost` of the
/// [`Metrics`](crate::Metrics)), and another thread may take its place at once, also beyond the limit. When
/// the closure returns, its result is dropped on its thread, and the thread ends. No thread can be stopped
/// from outside in Rust: a closure that never returns keeps its thread and all that it owns until the process
/// ends. So let the closure check its [token](Job::with_token) where it can.
///
/// A closure that has not begun when its deadline passes never begins: the thread that notices drops it, with
/// what it has captured. A closure that is cancelled before is dropped by the thread that cancels it. A panic
/// of its destructor ends there.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::blocking::{Job, JobError};
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let answer = Job::new(|| 6 * 7).name("answer").timeout(Duration::from_secs(10)).submit();
///     assert_eq!(answer.await, Ok(42));
///
///     let (forever, wait) = std::sync::mpsc::channel::<()>();
///     let stuck = Job::new(move || wait.recv()).timeout(Duration::from_millis(20)).submit();
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
    until: JobDeadline,
}

/// The deadline of a job.
#[derive(Clone, Copy, Debug)]
enum JobDeadline {
    Never,
    After(Duration),
    At(Instant),
}

impl<T: Send + 'static> Job<T> {
    /// Makes a job that runs `f` on a thread that may block. The job has no deadline and no name; errors say
    /// where it was made.
    ///
    /// ```
    /// use paceline::blocking::Job;
    /// assert_eq!(paceline::block_on(Job::new(|| "done").submit()), Ok("done"));
    /// ```
    #[track_caller]
    pub fn new(f: impl FnOnce() -> T + Send + 'static) -> Self {
        Self::with_token(|_| f())
    }

    /// Makes a job as [`new`](Job::new) does, whose `f` can check whether its result is still wanted.
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
    /// let handle = job.timeout(Duration::from_millis(10)).submit();
    /// assert!(paceline::block_on(handle).is_err());
    /// ```
    #[track_caller]
    pub fn with_token(f: impl FnOnce(CancelToken) -> T + Send + 'static) -> Self {
        Self { body: Box::new(f), name: None, location: Location::caller(), until: JobDeadline::Never }
    }

    /// Sets the name of the job, for errors.
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

    /// Sets how long the job may take, from [`submit`](Job::submit) to its end: its deadline is then. With
    /// zero it never begins; with more than the clock can count it has no deadline.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::blocking::Job;
    /// let job = Job::new(|| 1).timeout(Duration::MAX);
    /// assert_eq!(paceline::block_on(job.submit()), Ok(1));
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.until = JobDeadline::After(timeout);
        self
    }

    /// Sets the time by which the job has to be done. If that has passed, the job never begins. Of this and
    /// [`timeout`](Job::timeout), the later call counts.
    ///
    /// ```
    /// use std::time::Instant;
    /// use paceline::blocking::Job;
    /// let job = Job::new(|| 1).deadline(Instant::now());
    /// assert!(paceline::block_on(job.submit()).is_err());
    /// ```
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.until = JobDeadline::At(deadline);
        self
    }

    /// Submits the job to the threads of the runtime whose thread or task this is, else to those of the
    /// process. The job runs as soon as one of them is free.
    ///
    /// If the runtime is shut down, the job is [`Cancelled`](super::JobError::Cancelled). If there is no
    /// thread and none can be started, awaiting the handle gives [`NoThread`](super::JobError::NoThread).
    ///
    /// # Panics
    ///
    /// Panics if `PACELINE_BLOCKING_THREADS` is not a positive number, and this is the first call that needs
    /// it; and as [`Timer`] does if the job has a deadline.
    pub fn submit(self) -> JobHandle<T> {
        let Self { body, name, location, until } = self;
        let (at, timeout) = match until {
            JobDeadline::Never => (None, Duration::MAX),
            JobDeadline::After(timeout) => (pool::now().checked_add(timeout), timeout),
            JobDeadline::At(at) => (Some(at), at.saturating_duration_since(pool::now())),
        };
        let threads = pool::current_blocking();
        let meta = SpawnMeta::new(TaskKind::Blocking, location).named(name.as_deref());
        let body = meta.observe(size_of_val(&*body)).wrap(body);
        let shared = SharedJob::new(body, name, location, timeout, threads.clone());
        if let Some(at) = at {
            // First, so that the timer exists when the job ends and takes it away.
            shared.watch(Timer::at(at));
        }
        // A job whose deadline has passed needs no thread.
        let needed = shared
            .answer()
            .is_none()
            .then(|| threads.submit(Work::Errand(shared.clone(), Some(pool::hold_clock()))));
        let no_thread = needed.and_then(Result::err).map(|error| error.kind());
        JobHandle::new(shared, no_thread)
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.name).field("until", &self.until).finish_non_exhaustive()
    }
}
