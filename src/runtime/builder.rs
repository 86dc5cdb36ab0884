//! [`Builder`]: how a runtime is to be.

mod hooks;

use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{MAX_THREADS, Runtime, io_context, threads_from_environment};
use crate::blocking;
use crate::executor::StateRef;
use crate::leadership::Order;
use crate::pool::{CrewConfig, Hook, Policy, Pool, Promotion, StallHook};

/// As good as for ever; and unlike [`Duration::MAX`] it can be added to others, and to the present, without overflow.
const AGES: Duration = Duration::from_secs(365 * 24 * 3600);

/// So late a timer may be at most. More would be a timer that does not fire.
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
    policy: Policy,
    thread_name: String,
    stack_size: Option<usize>,
    on_thread_start: Option<Hook>,
    on_thread_stop: Option<Hook>,
    on_thread_park: Option<Hook>,
    on_thread_unpark: Option<Hook>,
    on_stall: Option<StallHook>,
    blocking_threads: Option<usize>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            threads: None,
            current_thread: false,
            max_threads: None,
            policy: Policy::default(),
            thread_name: "paceline".into(),
            stack_size: None,
            on_thread_start: None,
            on_thread_stop: None,
            on_thread_park: None,
            on_thread_unpark: None,
            on_stall: None,
            blocking_threads: None,
        }
    }

    /// How many workers there are. Without it: as `PACELINE_THREADS` says, else one for each core.
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

    /// No workers at all: what is spawned is polled by the threads that are in a [`block_on`](Runtime::block_on) of the runtime, and
    /// else not. For a program with one thread, and for tests. [`threads`](Builder::threads) and
    /// [`max_threads`](Builder::max_threads) do not count then.
    ///
    /// A task that blocks keeps the others from running, as nobody stands in for its thread. What [blocks on purpose](crate::blocking) has
    /// threads of its own, as ever.
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

    /// How many workers there may be while the usual ones are all stuck in tasks that block. Without it: 512.
    ///
    /// For tasks that compute for long there is one thread more, however many they are, which sees to events meanwhile (and another
    /// one when it has computed for a tenth of a second without a pause, or all others have; then for two tenths, four);
    /// for threads that wait for a core, because other processes use them, none. That needs a system that tells the one from
    /// the other, which is Linux so far: elsewhere a task that computes is taken for one that blocks, and to have no more threads
    /// than cores, set this to the same number as [`threads`](Builder::threads).
    ///
    /// Where all of them are stuck, and one of them in a `block_on` inside of a task, that one polls other tasks while it waits:
    /// what it waits for may be among them. A lock that is held across such a `block_on`, and that those tasks take, is a
    /// deadlock then; one thread more avoids that.
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

    /// How many threads there may be for what [blocks on purpose](crate::blocking), beside the workers, and not counting those that
    /// are lost. Without it: 500, or for an [installed](Builder::install) one as `PACELINE_BLOCKING_THREADS` says.
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

    /// When a leader that found an event wakes another thread to lead in its place. Without it:
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

    /// Which of the threads that wait is woken first. Without it: [`Order::LastInFirstOut`].
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

    /// How long a thread may stay awake without work, where its waits are usually shorter than that: the leader, where
    /// events come one by one, and a thread that waits for what another one does. Without it: 50 microseconds; zero
    /// turns it off, and [`Duration::MAX`] sets no limit. With zero no clock is read where there is no work, and nobody knows
    /// what was rare: so the deputy wakes up once after each burst of work, which else it does not where they are rare.
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

    /// How often the deputy looks whether anybody looks for events. When a task blocks the thread that was going to, its
    /// second look finds that out. Without it: one millisecond; with [`Duration::MAX`] it looks only when it is called.
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

    /// How late a timer may be where others fired shortly before it: when timers are due one after the other, those of so long
    /// a time fire together, at the end of it, and the system is asked to wake a thread once for all of them. Without it: 50
    /// microseconds. None fires early; and the first one after as long without any is on time.
    ///
    /// With zero, each is on time, and pays for it. There is no more of it than a second, also with [`Duration::MAX`].
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

    /// Waits through `polling`'s portable interface even where there is a faster way: to see what that one is
    /// worth, or to work around it. Without it: the fastest way there is.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).portable(true).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn portable(mut self, portable: bool) -> Self {
        self.policy.portable = portable;
        self
    }

    /// What the workers are called, followed by a number. Without it: `paceline`.
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
        self.thread_name = name.into();
        self
    }

    /// The stack size of a worker, and of a thread for what [blocks on purpose](crate::blocking), in bytes. Without it: the standard library's.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).stack_size(256 * 1024).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Starts the runtime.
    ///
    /// ```
    /// let error = paceline::Runtime::builder().threads(4).max_threads(2).build().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it would have no threads, of either kind, more than it may have, or a
    /// `max_blind` of zero; else what the system says when it has no descriptors or threads left.
    pub fn build(self) -> io::Result<Runtime> {
        self.start(StateRef::shared())
    }

    /// Makes this the default instance, on which the free functions act.
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
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is a default instance already; the others of
    /// [`build`](Builder::build).
    pub fn install(self) -> io::Result<()> {
        if self.current_thread {
            let what = "the default instance needs workers: whoever spawns onto it relies on them";
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
        blocking_threads.into_iter().for_each(blocking::limit_default);
        // The default instance is never dropped.
        std::mem::forget(runtime);
        Ok(())
    }

    /// What the crew is to be, with so many threads to begin with.
    pub(super) fn crew(&self, state: StateRef, threads: usize) -> CrewConfig {
        CrewConfig {
            state,
            threads,
            max_threads: match self.current_thread {
                true => 0,
                false => self.max_threads.unwrap_or(MAX_THREADS.max(threads)),
            },
            name: self.thread_name.clone(),
            stack_size: self.stack_size,
            on_start: self.on_thread_start.clone(),
            on_stop: self.on_thread_stop.clone(),
            on_park: self.on_thread_park.clone(),
            on_unpark: self.on_thread_unpark.clone(),
            on_stall: self.on_stall.clone(),
        }
    }

    fn start(self, state: StateRef) -> io::Result<Runtime> {
        let threads = match self.threads {
            _ if self.current_thread => 0,
            Some(threads) => threads,
            None => threads_from_environment()?,
        };
        let config = self.crew(state, threads);
        let max_threads = config.max_threads;
        let invalid = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if threads == 0 && !self.current_thread {
            return invalid("a runtime needs at least one thread: `threads` is 0".into());
        }
        if max_threads < threads {
            return invalid(format!("`max_threads` is {max_threads}, fewer than the {threads} of `threads`"));
        }
        if self.thread_name.contains('\0') {
            return invalid("`thread_name` has a NUL in it".into());
        }
        if self.policy.max_blind.is_zero() {
            return invalid("`max_blind` is zero: nobody can look that often".into());
        }
        if self.blocking_threads == Some(0) {
            return invalid("`blocking_threads` is 0: what blocks on purpose would wait for ever".into());
        }
        let pool = Pool::new(self.policy).map_err(|error| io_context("cannot make a reactor", error))?;
        let crew = pool.crew_or_found(|| config).clone();
        self.blocking_threads.into_iter().for_each(|threads| blocking::limit(&pool, threads));
        // If not all of its threads can be started, dropping it stops those that were.
        let runtime = Runtime { pool, crew, is_shut_down: AtomicBool::new(false) };
        runtime.crew.start(&runtime.pool)?;
        Ok(runtime)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("threads", &self.threads)
            .field("max_threads", &self.max_threads)
            .field("policy", &self.policy)
            .field("thread_name", &self.thread_name)
            .finish_non_exhaustive()
    }
}
