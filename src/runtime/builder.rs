//! [`Builder`]: the settings of a runtime.

mod hooks;

use std::fmt;
use std::io;
use std::time::Duration;

use super::{DEFAULT_MAX_WORKERS, Handle, Runtime, threads_from_environment};
use crate::executor::StateRef;
use crate::leadership::Order;
use crate::pool::{CrewConfig, Policy, Pool, Promotion, default_blocking};
use crate::reactor::WayChoice;
use crate::watch;

/// The longest duration that is stored. Unlike [`Duration::MAX`] it can be added to another duration or to an
/// instant without overflow.
const AGES: Duration = Duration::from_secs(365 * 24 * 3600);

/// The largest timer slack. With more, a timer would seem not to fire.
const MOST_SLACK: Duration = Duration::from_secs(1);

/// Builds a [`Runtime`], or the default instance.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Promotion, Runtime};
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Runtime::builder()
///     .threads(2)
///     .promotion(Promotion::Adaptive)
///     .max_blind(Duration::from_millis(1))
///     .on_stall(|stall| eprintln!("{stall}"))
///     .build()?;
/// runtime.block_on(async {});
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build` or `install`"]
pub struct Builder {
    threads: Option<usize>,
    current_thread: bool,
    max_threads: Option<usize>,
    pub(crate) policy: Policy,
    /// Without the numbers of threads.
    config: CrewConfig,
    blocking_threads: Option<usize>,
    /// Changes the pool before anything runs in it, for a module above this one.
    pub(crate) prepare: Option<fn(&Pool) -> io::Result<()>>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            threads: None,
            current_thread: false,
            max_threads: None,
            policy: Policy::default(),
            config: CrewConfig { name: "paceline".into(), ..CrewConfig::default() },
            blocking_threads: None,
            prepare: None,
        }
    }

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

    /// Sets when a leader that found an event wakes another thread to lead in its place. The default is
    /// [`Promotion::Adaptive`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use paceline::Promotion;
    /// let runtime = paceline::Runtime::builder().threads(1).promotion(Promotion::Eager).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn promotion(mut self, promotion: Promotion) -> Self {
        self.policy.promotion = promotion;
        self
    }

    /// Sets which waiting thread is woken first. The default is [`Order::LastInFirstOut`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use paceline::Order;
    /// let runtime = paceline::Runtime::builder().threads(1).order(Order::FirstInFirstOut).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn order(mut self, order: Order) -> Self {
        self.policy.order = order;
        self
    }

    /// Sets how long a thread may stay awake without work if its waits are usually shorter than that: the
    /// leader, if events come one by one, and a thread that waits for another one. The default is 50
    /// microseconds. Zero turns spinning off, but for some microseconds beside a leader that is busy, and
    /// [`Duration::MAX`] sets no limit. With zero, the deputy
    /// also wakes up once after each burst of work, even if bursts are rare: a thread that does not spin
    /// does not measure how long its waits are.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::time::Duration;
    /// let runtime = paceline::Runtime::builder().threads(1).spin(Duration::ZERO).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spin(mut self, spin: Duration) -> Self {
        self.policy.spin = spin.min(AGES);
        self
    }

    /// Sets how often the deputy checks that a thread looks for events. When a task blocks the thread that
    /// was about to do that, the second check finds out. The default is one millisecond. With
    /// [`Duration::MAX`] the deputy checks only when it is called.
    ///
    /// A request that wakes an idle runtime sets a timer for the first check, and the end of its work stops
    /// it. Linux does both cheaply if the timer is due after the next tick of its scheduler, which comes
    /// every four milliseconds on many systems. On a virtual machine, five milliseconds instead of one made a
    /// lone request cost 13 us of processor time instead of 25.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::time::Duration;
    /// let runtime = paceline::Runtime::builder().threads(1).max_blind(Duration::from_micros(200)).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_blind(mut self, max_blind: Duration) -> Self {
        self.policy.max_blind = max_blind.min(AGES);
        self
    }

    /// Sets how late a timer may fire if others fired shortly before. When timers are due in close
    /// succession, all those within this time fire together at its end, and the operating system wakes a
    /// thread once for all of them. The default is 50 microseconds. No timer fires early. The first timer
    /// after a pause of that length is on time.
    ///
    /// With zero every timer is on time, at the cost of more wake-ups. The maximum is one second, also for
    /// [`Duration::MAX`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::time::Duration;
    /// use paceline::Timer;
    /// let runtime = paceline::Runtime::builder().threads(1).timer_slack(Duration::from_millis(1)).build()?;
    /// let timers: Vec<_> = (0..100)
    ///     .map(|number| runtime.spawn(Timer::after(Duration::from_micros(10 * number))))
    ///     .collect();
    /// timers.into_iter().for_each(|timer| drop(runtime.block_on(timer)));
    /// // The leader slept once for many of them.
    /// assert!(runtime.metrics().sleeps < 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timer_slack(mut self, slack: Duration) -> Self {
        self.policy.timer_slack = slack.min(MOST_SLACK);
        self
    }

    /// Sets whether to wait through the portable interface of `polling` even if there is a faster way: to
    /// compare both, or to work around a defect. By default the fastest way is used.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).portable(true).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn portable(mut self, portable: bool) -> Self {
        self.policy.way = if portable { WayChoice::Portable } else { WayChoice::Best };
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
        self.config.name = name.into();
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
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
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
        let max_threads = match self.current_thread {
            true => 0,
            false => self.max_threads.unwrap_or(DEFAULT_MAX_WORKERS.max(threads)),
        };
        CrewConfig { threads, max_threads, ..self.config }
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
        let invalid = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if threads == 0 && !self.current_thread {
            return invalid("a runtime needs at least one thread: `threads` is 0".into());
        }
        if let Some(max_threads) = self.max_threads.filter(|max| *max < threads) {
            return invalid(format!("`max_threads` is {max_threads}, fewer than the {threads} of `threads`"));
        }
        if self.config.name.contains('\0') {
            return invalid("`thread_name` has a NUL in it".into());
        }
        if self.policy.max_blind.is_zero() {
            return invalid("`max_blind` is zero: the deputy cannot check that often".into());
        }
        if self.blocking_threads == Some(0) {
            return invalid("`blocking_threads` is 0: closures that block on purpose would never run".into());
        }
        let pool = Pool::new(self.policy.clone(), watch::serve)
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
            .field("max_threads", &self.max_threads)
            .field("policy", &self.policy)
            .field("thread_name", &self.config.name)
            .finish_non_exhaustive()
    }
}
