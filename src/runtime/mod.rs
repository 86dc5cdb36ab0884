//! [`Runtime`]: a pool with workers of its own, and the free functions that act on the default instance.

mod builder;
mod handle;
mod load;
mod metric;
mod metrics;
mod stuck;
mod tasks;

pub use builder::Builder;
pub use handle::{Entered, Handle};
pub use load::{Load, ThreadLoad};
pub use metric::{Metric, MetricKind};
pub use metrics::Metrics;
pub use stuck::StuckError;
pub use tasks::{ClosureGroup, TaskList};

use std::env;
use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::num::NonZeroUsize;
use std::panic::Location;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use async_task::Runnable;

use crate::blocking_threads::{Threads, Work};
use crate::current::{current_pool, default_instance};
use crate::end;
use crate::executor::{self, StateRef, Task, boxed_if_large, spawn_in_vain};
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool::block_on::PoolSource;
use crate::pool::serve::block_on_in;
use crate::pool::{Crew, Drained, Pool, ThreadInfo};
use crate::simulated;
use crate::sync::Instant;

/// The default limit of workers while the usual ones are all stuck.
const DEFAULT_MAX_WORKERS: usize = 512;

/// Upper bound of the threads that cancel foreign tasks of runtimes that have ended: enough for some
/// destructors that block.
const CANCELLERS: usize = 4;

/// How long dropping a [`Runtime`] waits for tasks that block.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// Worker threads, their executor and their reactor.
///
/// Most programs need none: [`spawn`] and [`block_on`](crate::block_on()) act on a default instance. Build a
/// runtime to choose the number and the settings of its threads, or to have two that do not disturb each
/// other.
///
/// Dropping a runtime stops its workers after their current polls and cancels its tasks. The drop waits at
/// most a tenth of a second for tasks that block. For destructors it waits while they make progress (25 ms
/// for one that does not, 10 s in all). [`shutdown`](Runtime::shutdown) waits as long as you say, and
/// dropping the runtime after that does not wait again.
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(2).build()?;
/// let task = runtime.spawn(async { 6 * 7 });
/// assert_eq!(runtime.block_on(task), 42);
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    pool: Arc<Pool>,
    crew: Arc<Crew>,
    /// Whether `shutdown` was called: then dropping the runtime does not wait.
    is_shut_down: AtomicBool,
}

impl Runtime {
    /// Returns a builder with the default settings.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).thread_name("mine").build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Runs a future on the current thread until it is done. Tasks that it spawns run on the runtime's
    /// workers.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let sum = runtime.block_on(async { paceline::spawn(async { 1 }).await + 1 });
    /// assert_eq!(sum, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the future panics.
    #[track_caller]
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        block_on_in(PoolSource::Given(&self.pool), pin!(Some(future)), Location::caller())
    }

    /// Spawns a future onto the workers. Dropping the [`Task`] cancels it; [`Task::detach`] lets it run on
    /// its own.
    ///
    /// After [`shutdown`](Runtime::shutdown) the future is dropped at once, and awaiting the task panics;
    /// [`Task::fallible`] returns `None` instead.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 1 })), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        boxed_if_large!(future: Send, meta, spawn_on(&self.pool, &self.crew, future, meta))
    }

    /// Returns a reference to the runtime, for code that does not run on its threads.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// let other = std::thread::spawn(move || handle.block_on(handle.spawn(async { 7 })));
    /// assert_eq!(other.join().unwrap(), 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle(&self) -> Handle {
        Handle::of(&self.pool)
    }

    /// Returns what the runtime has done so far, and has right now.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// runtime.block_on(runtime.spawn(async {}));
    /// println!("{}", runtime.metrics());
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        Metrics::of(&self.pool)
    }

    /// Returns what each thread of the runtime is doing: first the workers in the order in which they
    /// started, then other threads that are in a `block_on` of the runtime. Threads for closures that [block
    /// on purpose](crate::blocking) are not included, and a thread that is being started is missing for its
    /// first moments.
    ///
    /// The call is cheap and safe at any time and from anywhere: in a task, in a hook, while the runtime
    /// shuts down or drains. The threads do nothing for it, and no thread waits except for a lock that is
    /// held for some instructions. The threads are examined one after the other while they go on: the result
    /// is close, but not a snapshot. However, two threads are never reported as leading. States shorter than
    /// one or two ticks of the deputy ([`max_blind`](Builder::max_blind)) are not told apart. After a
    /// shutdown, if no thread is stuck, no worker is left.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use paceline::Role;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// let (end, ended) = mpsc::channel::<()>();
    /// runtime.spawn(async move { drop(ended.recv()) }).detach();
    /// let blocked = loop {
    ///     if let Some(thread) = runtime.threads().into_iter().find(|thread| thread.role == Role::Blocks) {
    ///         break thread;
    ///     }
    /// };
    /// println!("{blocked}");    // paceline-1 blocks for 1.0ms, in the task spawned at src/main.rs:7:9
    /// assert_eq!(blocked.spawned_at.unwrap().file(), file!());
    /// drop(end);
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(&self) -> Vec<ThreadInfo> {
        self.pool.threads()
    }

    /// Ends the runtime gracefully, and reports. Its tasks have until the `deadline`, which counts from this
    /// call.
    ///
    /// 1. From the first poll of the returned future, no task is accepted from outside: a future that is
    ///    spawned there is cancelled at once, and its [`fallible`](Task::fallible) form returns `None`. The
    ///    remaining tasks may spawn others until the deadline, so a handler can finish its work.
    /// 2. Until the deadline the remaining work may finish: tasks, those that they spawn, and closures that
    ///    [block](crate::blocking), including those that wait for a thread or that remaining tasks submit.
    ///    Streams that block belong to their tasks. A `deadline` of zero leaves no time; one that is too long
    ///    for the clock sets no limit.
    /// 3. Then the rest is cancelled: each future is dropped at its next await. Destructors run on the
    ///    runtime's threads, and on others that are started for that. Closures that
    ///    have not begun never run, and the tokens of running [jobs](crate::blocking::Job) report the
    ///    cancellation.
    /// 4. The report says how many tasks finished and how many were cancelled. The tasks that still keep
    ///    their thread, in a poll or a destructor, are named, and so are the closures that still run. A
    ///    thread is reported after 25 milliseconds asleep, or of processor time, without progress. A thread
    ///    that only waits for a core has up to five seconds; one that drops future after future has up to
    ///    ten; one that is in neither a poll nor a destructor has half a second. A stuck task is cancelled
    ///    when its poll ends.
    ///
    /// The drain ends as soon as neither a task nor a closure is left. Then the runtime is in the same state
    /// as after [`shutdown`](Runtime::shutdown), and dropping it does not wait.
    ///
    /// Await the future in a `block_on` of a thread that is not the runtime's, as `main` does, or in a task
    /// of another runtime. A task of this runtime may begin the drain, and does not hold it up by awaiting
    /// it, but the task is cancelled with the others, and does not get the report. (A task that awaits it in
    /// an executor of its own holds the drain up until the deadline.)
    ///
    /// Do not await the future in a `block_on` inside of a task of this runtime, or in a closure that
    /// [blocks](crate::blocking) for it: the drain waits for that task or closure. The drain also does not
    /// see that some other task or closure waits for a task that awaits it: if the deadline never comes, each
    /// waits for the other.
    ///
    /// All drains of a runtime, at the same time or later, return the same report; the earliest of their
    /// deadlines counts. If the runtime is shut down or dropped meanwhile, the rest is cancelled, and the
    /// report comes then. On a runtime that was shut down before, there is nothing left to finish, and the
    /// report says what is stuck.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Timer;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// runtime.spawn(Timer::after(Duration::from_millis(5))).detach();
    /// runtime.spawn(Timer::after(Duration::from_secs(3600))).detach();
    /// let report = runtime.block_on(runtime.drain(Duration::from_millis(50)));
    /// assert!(report.cancelled > 0);
    /// assert_eq!(runtime.block_on(runtime.spawn(async {}).fallible()), None);
    /// println!("{report}");    // drained in 50ms: 1 task finished, 1 was cancelled
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the future is polled before the report is made, in a [`block_on`](crate::block_on()) inside of a
    /// task of this runtime, or in a closure of [`unblock`](crate::unblock()) or of a
    /// [`Job`](crate::blocking::Job) that runs on this runtime's threads. A first poll there does not begin
    /// the drain. Await it on a thread of your own instead.
    ///
    /// # Cancel safety
    ///
    /// Once it was polled, the drain goes on even if the future is dropped; call `drain` again for the
    /// report. (If the process cannot start a thread, the drain goes on only while it is awaited: the
    /// awaiting code tries again from time to time, and performs the third step in its own poll.)
    pub fn drain(&self, deadline: Duration) -> impl Future<Output = Drained> + Send + use<> {
        let _clocks = simulated::system_clocks();
        drain(self.pool.clone(), Instant::now().checked_add(deadline))
    }

    /// Stops the workers after their current polls, waits for them no longer than `timeout`, and cancels all
    /// tasks: awaiting one panics, unless it is [`fallible`](Task::fallible).
    ///
    /// This may be called again, and from inside a task: then the call does not wait for that task's own
    /// thread. Closures that [block on purpose](crate::blocking) and have not begun are cancelled, too.
    /// Closures that run go on and are not waited for, so they may call this as well. (A task that blocks its
    /// thread until another thread has called this is waited for until the `timeout`, like any other.)
    /// Sources and timers work until the runtime is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// runtime.spawn(std::future::pending::<()>()).detach();
    /// runtime.shutdown(Duration::from_secs(1)).expect("nothing blocks");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the tasks that still block their threads. Such a thread ends when its task's current poll
    /// returns.
    #[doc(alias = "shutdown_timeout")]
    #[doc(alias = "shutdown_background")]
    pub fn shutdown(&self, timeout: Duration) -> Result<(), StuckError> {
        if self.pool.is_inherited() {
            // In the child of a fork: the threads belong to the parent, and nothing of the runtime may be
            // touched.
            return Ok(());
        }
        self.is_shut_down.store(true, Relaxed);
        let _clocks = simulated::system_clocks();
        let until = Instant::now().checked_add(timeout);
        let threads = end::shut_down(&self.pool, &self.crew, until);
        if threads.is_empty() { Ok(()) } else { Err(StuckError { threads, timeout }) }
    }
}

#[cfg(all(test, not(paceline_loom)))]
impl Runtime {
    /// Returns the pool: for scenarios that check that nothing is left in it, and for tests of the deputy.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Drop for Runtime {
    /// Shuts the runtime down and ends its pool. Waits for its threads for a limited time; for no time if the
    /// runtime was shut down or drained before. Does nothing in the child of a fork.
    fn drop(&mut self) {
        if self.pool.is_inherited() {
            return;
        }
        let _clocks = simulated::system_clocks();
        // A caller that needs the names of stuck tasks calls `shutdown`, which has waited already.
        let has_ended = self.is_shut_down.load(Relaxed) || self.crew.is_drained();
        let timeout = if has_ended { Duration::ZERO } else { DROP_TIMEOUT };
        let _ = self.shutdown(timeout);
        self.pool.end();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("crew", &self.crew).finish_non_exhaustive()
    }
}

/// Spawns a future onto the runtime of this thread or task, or else onto the default instance. The first call
/// starts the workers of that instance: one for each core, or as many as `PACELINE_THREADS` says.
///
/// ```
/// let task = paceline::spawn(async { 6 * 7 });
/// assert_eq!(paceline::block_on(task), 42);
/// ```
///
/// Dropping a [`Task`] cancels its future. The compiler's warning about an unused task suggests `let _ =
/// spawn(..)`, which drops the task at once: write `spawn(..).detach()` for a task that runs on its own.
///
/// # Panics
///
/// If the workers of the default instance cannot be started, or `PACELINE_THREADS` is not a positive number.
/// The next call tries again.
#[track_caller]
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
    boxed_if_large!(future: Send, meta, spawn_from(future, meta))
}

/// Like [`spawn`], for a task that `meta` describes.
#[track_caller]
pub(crate) fn spawn_from<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    meta: SpawnMeta<'_>,
) -> Task<T> {
    spawn_in(current_pool(), future, meta)
}

/// Like [`spawn_from`], but always onto the default instance.
#[track_caller]
pub(crate) fn spawn_by_default<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    meta: SpawnMeta<'_>,
) -> Task<T> {
    spawn_in(default_instance(), future, meta)
}

/// Spawns onto a pool, and starts its workers if necessary. Panics if there is no pool, or if its workers
/// cannot be started.
#[track_caller]
fn spawn_in<T: Send + 'static>(
    pool: io::Result<Arc<Pool>>,
    future: impl Future<Output = T> + Send + 'static,
    meta: SpawnMeta<'_>,
) -> Task<T> {
    let started = pool.and_then(|pool| {
        crew_of(&pool)?.start(&pool)?;
        Ok(pool)
    });
    match started {
        Ok(pool) => spawn_on(&pool, pool.crew().expect("it was just started"), future, meta),
        Err(error) => panic!("the default instance cannot be started: {error}"),
    }
}

/// Returns the crew of a pool. The crew of the default instance is made by the first call, which returns an
/// error if `PACELINE_THREADS` is invalid; its workers are not started here.
#[inline]
fn crew_of(pool: &Arc<Pool>) -> io::Result<&Arc<Crew>> {
    match pool.crew() {
        Some(crew) => Ok(crew),
        None => make_crew(pool),
    }
}

/// Makes the crew of the default instance, and starts no worker. Returns an error if `PACELINE_THREADS` is
/// invalid. If another thread was faster, returns the crew of that thread.
#[cold]
fn make_crew(pool: &Arc<Pool>) -> io::Result<&Arc<Crew>> {
    let threads = threads_from_environment()?;
    Ok(pool.crew_or_found(|| Builder::new().crew(StateRef::forever(), threads)))
}

/// Drains the pool, as [`Runtime::drain`] describes: its crew, and the threads of its closures that block.
async fn drain(pool: Arc<Pool>, deadline: Option<Instant>) -> Drained {
    // The default instance may have no crew yet: it is made here and closed, so tasks that are spawned later
    // are cancelled. No worker starts here, so an invalid number in the environment does not matter.
    pool.crew_or_found(|| Builder::new().crew(StateRef::forever(), threads_from_environment().unwrap_or(1)));
    end::drain(pool, deadline).await
}

/// Returns what the current runtime has done so far, and has right now. The current runtime is the one on
/// which [`spawn`] acts: that of this thread or task, or else the default instance. For another one see
/// [`Handle::all`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(3).build()?;
/// assert_eq!(runtime.block_on(async { paceline::metrics().workers }), 3);
///
/// paceline::block_on(paceline::spawn(async {}));
/// assert!(paceline::metrics().polls_direct + paceline::metrics().polls_surplus > 0);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// If that is the default instance, it does not exist yet, and the process has no descriptor left to make it.
pub fn metrics() -> Metrics {
    match current_pool() {
        Ok(pool) => Metrics::of(&pool),
        Err(error) => panic!("the default instance cannot be started: {error}"),
    }
}

/// Spawns onto a crew whose workers run. If the crew accepts no tasks from this thread any more, drops the
/// future and returns a task that is cancelled. Aborts the child of a fork.
fn spawn_on<T: Send + 'static>(
    pool: &Arc<Pool>,
    crew: &Crew,
    future: impl Future<Output = T> + Send + 'static,
    meta: SpawnMeta<'_>,
) -> Task<T> {
    pool.assert_not_inherited();
    if crew.is_closed() && !crew.accepts_from_here() {
        return pool.visit(|| spawn_in_vain(crew.state().clone(), Box::pin(future), meta.spawned_at));
    }
    // SAFETY: the future is `Send` and borrows nothing. If the workers stop meanwhile, the task is cancelled
    // with the others.
    unsafe { executor::spawn(crew.state().clone(), future, meta) }
}

/// Queues one poll of a foreign task on the crew of `pool`, and starts the workers if necessary. Cancels the
/// task if the runtime was dropped or is cancelling its tasks. Panics, and leaks the task, if the workers
/// cannot be started.
#[track_caller]
fn schedule_in(pool: Option<Arc<Pool>>, runnable: Runnable) {
    let Some(pool) = pool else { return cancel_elsewhere(None, runnable) };
    pool.assert_not_inherited();
    let crew = crew_of(&pool).and_then(|crew| {
        if !crew.is_stopped() {
            crew.start(&pool)?;
        }
        Ok(crew)
    });
    match crew {
        Ok(crew) if crew.is_stopped() => cancel_elsewhere(Some(pool.clone()), runnable),
        // If the workers stop after that look, the task is cancelled with the others.
        Ok(crew) => executor::schedule(crew.state(), runnable),
        Err(error) => {
            mem::forget(runnable);
            panic!("the default instance cannot be started: {error}")
        }
    }
}

/// Has another thread drop a foreign task's runnable, which cancels the task, inside of `pool` if that still
/// exists. The caller is called by a
/// waker, perhaps under a lock that the task's future takes, as the listener of a channel does; so a schedule
/// function must not drop its runnable. At most [`CANCELLERS`] threads in the process do that. If there is
/// none and none can be started, drops the runnable here: code that awaits the task must not wait for ever.
fn cancel_elsewhere(pool: Option<Arc<Pool>>, runnable: Runnable) {
    static THREADS: OnceLock<Arc<Threads>> = OnceLock::new();
    let threads = THREADS.get_or_init(|| Arc::new(Threads::new(CANCELLERS, None)));
    let cancels = async move {
        match pool {
            Some(pool) => pool.visit(|| drop(runnable)),
            None => drop(runnable),
        }
    };
    let (drops, task) = async_task::spawn(cancels, |_| ());
    task.detach();
    let _ = threads.submit(Work::Task(drops, None, None));
}

/// Returns the number that `PACELINE_THREADS` says, else the number of cores. Returns `InvalidInput` if the
/// variable is not a positive number.
fn threads_from_environment() -> io::Result<usize> {
    let Ok(text) = env::var("PACELINE_THREADS") else {
        return Ok(thread::available_parallelism().map_or(1, usize::from));
    };
    text.parse().map(NonZeroUsize::get).map_err(|_| {
        let what = format!("PACELINE_THREADS is {text:?}; it should be a positive number of threads");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

pub(crate) fn io_context(context: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}
