//! [`Builder`]: the settings of a runtime.

mod hooks;
mod tuning;

use std::fmt;
use std::io;

use super::{DEFAULT_MAX_WORKERS, Handle, Runtime, invalid, threads_from_environment};
use crate::executor::StateRef;
use crate::pool::{CrewConfig, Pool, Tuning, default_blocking};
use crate::watch;

/// Builds a [`Runtime`], or the default instance. [`Runtime::builder`] makes one with the default settings.
///
/// | what is set | methods |
/// |---|---|
/// | how many threads there are | [`threads`], [`max_threads`], [`blocking_threads`], or [`current_thread`] |
/// | what they are called, and their stacks | [`thread_name`], [`stack_size`] |
/// | reports | [`on_stall`], [`on_task_panic`] |
/// | hooks at the start and the end of a worker | [`on_thread_start`], [`on_thread_stop`] |
/// | hooks around the sleep of a worker | [`on_thread_park`], [`on_thread_unpark`] |
/// | how the threads share work; few programs need that | [`tuning`] |
///
/// [`threads`]: Self::threads
/// [`max_threads`]: Self::max_threads
/// [`blocking_threads`]: Self::blocking_threads
/// [`current_thread`]: Self::current_thread
/// [`thread_name`]: Self::thread_name
/// [`stack_size`]: Self::stack_size
/// [`on_stall`]: Self::on_stall
/// [`on_task_panic`]: Self::on_task_panic
/// [`on_thread_start`]: Self::on_thread_start
/// [`on_thread_stop`]: Self::on_thread_stop
/// [`on_thread_park`]: Self::on_thread_park
/// [`on_thread_unpark`]: Self::on_thread_unpark
/// [`tuning`]: Self::tuning
///
/// # Examples
///
/// ```
/// use paceline::Runtime;
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Runtime::builder()
///     .threads(2)
///     .thread_name("web")
///     .on_stall(|stall| eprintln!("{stall}"))
///     .build()?;
/// runtime.block_on(async {});
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until `build` or `install`"]
pub struct Builder {
    threads: Option<usize>,
    current_thread: bool,
    max_threads: Option<usize>,
    pub(crate) tuning: Tuning,
    thread_name: Option<String>,
    /// Without the numbers of threads, and their name.
    config: CrewConfig,
    blocking_threads: Option<usize>,
    /// Changes the pool before anything runs in it, for a module above this one.
    pub(crate) prepare: Option<fn(&Pool) -> io::Result<()>>,
}

impl Builder {
    /// Sets the number of workers. The default is the value of `PACELINE_THREADS`, or else one for each core.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// assert_eq!(runtime.metrics().workers, 2);
    /// assert!(paceline::Runtime::builder().threads(0).build().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Builds a runtime without workers: its tasks are polled only by the threads that are in a
    /// [`block_on`](Handle::block_on) of the runtime. This is for programs with one thread, and for tests.
    /// [`threads`](Builder::threads) and [`max_threads`](Builder::max_threads) are ignored.
    ///
    /// Tasks are polled in the order in which they became ready, and the future of the `block_on` after 61 of
    /// them at the latest.
    ///
    /// A task that blocks its thread delays all others: no other thread polls them. Closures that [block on
    /// purpose](crate::blocking) still run on threads of their own. With the feature `test-clock`, such a
    /// runtime may have a clock that stands still: see `start_paused` and `paceline::clock`.
    ///
    /// ```
    /// use std::thread;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().current_thread().build()?;
    /// let task = runtime.spawn(async { thread::current().id() });
    /// assert_eq!(runtime.block_on(task), thread::current().id());
    /// assert_eq!(runtime.metrics().workers, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn current_thread(mut self) -> Self {
        self.current_thread = true;
        self
    }

    /// Sets how many workers there may be while the usual ones are all stuck in tasks that block. The default
    /// is 512, or the number of [`threads`](Builder::threads) if that is higher.
    ///
    /// For tasks that compute for long, the runtime adds one thread, however many such tasks there are: that
    /// thread serves events meanwhile. Another one is added when all of them have computed for a tenth of a
    /// second without a pause, or for a second by the clock, the next one after twice that time, and so on.
    /// For threads that wait for a core, because other processes use the cores, no thread is added. To tell
    /// these cases apart the runtime needs Linux. On other systems a task that computes is taken for one that
    /// blocks; to have no more threads than cores there, set this to the same number as
    /// [`threads`](Builder::threads).
    ///
    /// A worker that waits in a [`block_on`](crate::block_on()) inside of a task counts, too. If as many
    /// tasks as this wait there at the same time for tasks that have not begun, they wait for ever.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).max_threads(8).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_threads(mut self, max_threads: usize) -> Self {
        self.max_threads = Some(max_threads);
        self
    }

    /// Sets how many threads there may be for closures that [block on purpose](crate::blocking), besides the
    /// workers and not counting lost threads. The default is 500, or for an [installed](Builder::install)
    /// runtime the value of `PACELINE_BLOCKING_THREADS`.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).blocking_threads(4).build()?;
    /// assert_eq!(runtime.block_on(async { paceline::unblock(|| 6 * 7).await }), 42);
    /// assert!(paceline::Runtime::builder().blocking_threads(0).build().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = Some(threads);
        self
    }

    /// Sets how the threads share work and keep time, in place of what was set before.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Runtime, Tuning};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// // For a process that runs beside more important ones: no spinning.
    /// let tuning = Tuning::default().spin(Duration::ZERO);
    /// let runtime = Runtime::builder().threads(1).tuning(tuning).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// Sets the name of the workers, which is followed by a number. The default is `paceline`.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).thread_name("web").build()?;
    /// runtime.block_on(runtime.spawn(async {
    ///     assert!(std::thread::current().name().unwrap().starts_with("web-"));
    /// }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.thread_name = Some(name.into());
        self
    }

    /// Sets the stack size, in bytes, of the workers and of the threads for closures that [block on
    /// purpose](crate::blocking). The default is that of the standard library.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).stack_size(256 * 1024).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// Starts the runtime and its workers. The threads for closures that block start when they are needed.
    ///
    /// ```
    /// let error = paceline::Runtime::builder().threads(4).max_threads(2).build().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) if the runtime would have no threads of either
    /// kind, if `threads` is more than `max_threads`, if `thread_name` contains a NUL, if `max_blind` is
    /// zero, or if `PACELINE_THREADS` is needed and not a positive number. Otherwise returns the system's
    /// error if no descriptor or no thread is left.
    pub fn build(self) -> io::Result<Runtime> {
        let state = if self.current_thread { StateRef::in_order() } else { StateRef::shared() };
        self.start(state)
    }

    /// Makes this runtime the default instance, on which the free functions act.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// paceline::Runtime::builder().threads(2).install()?;
    /// paceline::block_on(paceline::spawn(async {}));
    /// assert!(paceline::Runtime::builder().install().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is a default instance already,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a runtime of the [current
    /// thread](Builder::current_thread), and otherwise the errors of [`build`](Builder::build).
    pub fn install(self) -> io::Result<()> {
        if self.current_thread {
            let what = "the default instance needs workers: tasks are spawned onto it without a `block_on`";
            return Err(invalid(what));
        }
        let already = || {
            let what = "the default instance runs already: install before anything else uses it";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        };
        if Pool::is_installed() {
            return already();
        }
        let blocking_threads = self.blocking_threads;
        let runtime = self.start(StateRef::forever())?;
        if !Pool::install(&runtime.pool) {
            return already();
        }
        if let Some(threads) = blocking_threads {
            default_blocking().set_limit(threads);
        }
        // The default instance is never dropped.
        std::mem::forget(runtime);
        Ok(())
    }

    /// Returns the settings of the crew, which begins with `threads` workers.
    pub(super) fn crew(self, threads: usize) -> CrewConfig {
        let most = self.max_threads.unwrap_or(DEFAULT_MAX_WORKERS.max(threads));
        let max_threads = if self.current_thread { 0 } else { most };
        let name = self.thread_name.unwrap_or_else(|| "paceline".into());
        CrewConfig { threads, max_threads, name, ..self.config }
    }

    /// Checks the settings, makes the pool and its crew, whose tasks are kept in `state`, and starts the
    /// workers. Returns `InvalidInput` for settings that are wrong or do not fit together, and the error if
    /// no reactor can be made. If one worker cannot be started, stops the others and returns the error.
    fn start(self, state: StateRef) -> io::Result<Runtime> {
        let threads = match self.threads {
            _ if self.current_thread => 0,
            Some(threads) => threads,
            None => threads_from_environment()?,
        };
        if let Some(max_threads) = self.max_threads.filter(|max| *max < threads) {
            let what = format!("`max_threads` is {max_threads}, fewer than the {threads} of `threads`");
            return Err(invalid(what));
        }
        let has_nul = self.thread_name.as_ref().is_some_and(|name| name.contains('\0'));
        let wrong = [
            (threads == 0 && !self.current_thread, "a runtime needs at least one thread: `threads` is 0"),
            (has_nul, "`thread_name` has a NUL in it"),
            (self.tuning.max_blind.is_zero(), "`max_blind` is zero: the deputy cannot check that often"),
            (self.blocking_threads == Some(0), "`blocking_threads` is 0: closures that block need a thread"),
        ];
        if let Some((_, what)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(invalid(what));
        }
        let pool = Pool::new(self.tuning.clone(), watch::serve)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot make a reactor: {error}")))?;
        let (prepare, blocking_threads) = (self.prepare, self.blocking_threads);
        let crew = pool.crew_or_found(|| (state, self.crew(threads))).clone();
        crew.watch_panics(&pool);
        prepare.map_or(Ok(()), |prepare| prepare(&pool))?;
        if let Some(threads) = blocking_threads {
            pool.blocking().set_limit(threads);
        }
        // If a thread cannot be started, dropping the runtime stops those that were.
        let handle = Handle::of(&pool);
        let runtime = Runtime { handle, pool, crew };
        runtime.crew.start(&runtime.pool)?;
        runtime.pool.publish();
        Ok(runtime)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("threads", &self.threads)
            .field("tuning", &self.tuning)
            .field("thread_name", &self.thread_name)
            .finish_non_exhaustive()
    }
}
