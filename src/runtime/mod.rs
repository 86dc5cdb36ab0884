//! [`Runtime`]: a pool with workers of its own, and the free functions that act on the default instance.

mod builder;
mod foreign;
mod handle;
mod load;
mod metric;
mod metrics;
mod stuck;
mod tasks;
mod threads;

pub use builder::Builder;
pub use handle::Handle;
pub use load::{Load, ThreadLoad};
pub use metric::{Metric, MetricKind};
pub use metrics::Metrics;
pub use stuck::StuckError;
pub use tasks::{ClosureGroup, TaskList};
pub use threads::{Role, ThreadInfo, ThreadKind};

use std::env;
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::current::{current_pool, default_instance};
use crate::end;
use crate::executor::{self, StateRef, Task, boxed_if_large, spawn_in_vain};
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool::{Crew, Pool};
use crate::simulated;
use crate::sync::Instant;

/// The default limit of workers while the usual ones are all stuck.
const DEFAULT_MAX_WORKERS: usize = 512;

/// How long dropping a [`Runtime`] waits for its threads.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// Worker threads, their executor and their reactor.
///
/// Most programs need none: [`spawn`] and [`block_on`](crate::block_on()) act on a default instance. Build a
/// runtime to choose the number and the settings of its threads, or to have two that do not disturb each
/// other.
///
/// A runtime can do what its [`Handle`] can, to which it dereferences: [`spawn`](Handle::spawn),
/// [`block_on`](Handle::block_on), [`enter`](Handle::enter), [`drain`](Handle::drain),
/// [`metrics`](Handle::metrics), [`threads`](Handle::threads) and [`tasks`](Handle::tasks), for example. A
/// clone of the handle does not keep the runtime alive.
///
/// Dropping a runtime stops its workers after their current polls and cancels its tasks. The drop waits for
/// that at most a tenth of a second. [`shutdown`](Runtime::shutdown) waits as long as you say, and dropping
/// the runtime after that does not wait again.
///
/// # When it ends
///
/// | what | after [`shutdown`](Runtime::shutdown) or [`drain`](Handle::drain) | after its drop |
/// |---|---|---|
/// | its tasks | are cancelled | are cancelled |
/// | tasks that are spawned on it | are cancelled at once | are cancelled at once (by a [`Handle`]) |
/// | closures that [block](crate::blocking), not begun | are cancelled | are cancelled |
/// | closures that [block](crate::blocking), running | go on; the runtime does not wait for them | the same |
/// | a source that was made in it | works, wherever it is awaited | returns errors |
/// | a [`Timer`](crate::Timer) that was polled in it | fires | fires: it is armed again where it is awaited |
///
/// Awaiting a cancelled task panics with the text of `async-task`, `Task polled after completion`; its
/// [`fallible`](Task::fallible) form returns `None`.
///
/// # After a fork
///
/// A runtime, the default instance included, belongs to the process that made it: its threads do not exist in
/// a child. A child that waits in a `block_on`, spawns, or registers a source or a timer there is aborted
/// with a message, also if the fork happened inside of a `block_on` or a task and the child comes back to it.
/// The parent is not affected. A child may exit, replace its program (`exec`), drop what it inherited, and
/// use a [`Runtime`] that it builds. It has no default instance if the parent had one; fork before there is
/// one.
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
    /// What can be done with a runtime, but for its end.
    handle: Handle,
    pub(crate) pool: Arc<Pool>,
    crew: Arc<Crew>,
}

impl Runtime {
    /// Starts a runtime with the default settings: as many workers as `PACELINE_THREADS` says, or else one
    /// for each core.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::new()?;
    /// let _guard = runtime.enter();
    /// // Free functions act on the runtime now.
    /// assert_eq!(paceline::block_on(paceline::spawn(async { 6 * 7 })), 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Builder::build`].
    pub fn new() -> io::Result<Self> {
        Self::builder().build()
    }

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
        Builder::default()
    }

    /// Spawns a future onto the workers, as [`Handle::spawn`] does. This costs less: the runtime exists for
    /// as long as the call, and nothing has to be counted for that.
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
        self.handle.clone()
    }

    /// Stops the workers after their current polls, and cancels all tasks: awaiting one panics, unless it is
    /// [`fallible`](Task::fallible). Waits for that no longer than `timeout`, and goes on by itself after it.
    ///
    /// This may be called again, and from inside a task of the runtime or a hook of its workers: there the
    /// call waits for nothing, and returns `Ok`. Closures that [block on purpose](crate::blocking) and have
    /// not begun are cancelled, too. Closures that run go on, and have 25 milliseconds to return, so they may
    /// call this as well. (A task that blocks its thread until another thread has called this is waited for
    /// until the `timeout`, like any other.) Sources and timers work until the runtime is dropped.
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
    /// Returns the threads that have not stopped, and the tasks that block them. Such a thread ends when its
    /// task's current poll returns.
    #[doc(alias = "shutdown_timeout")]
    #[doc(alias = "shutdown_background")]
    pub fn shutdown(&self, timeout: Duration) -> Result<(), StuckError> {
        if self.pool.reactor.is_inherited() {
            // In the child of a fork: the threads belong to the parent, and nothing of the runtime may be
            // touched.
            return Ok(());
        }
        let _clocks = simulated::system_clocks();
        let until = Instant::now().checked_add(timeout);
        let threads = end::shut_down(&self.pool, &self.crew, until);
        if threads.is_empty() { Ok(()) } else { Err(StuckError { threads, timeout }) }
    }
}

impl Deref for Runtime {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    /// Shuts the runtime down and ends its pool. Waits for its threads for a limited time; for no time if the
    /// runtime was shut down or drained before. Does nothing in the child of a fork.
    fn drop(&mut self) {
        if self.pool.reactor.is_inherited() {
            return;
        }
        let _clocks = simulated::system_clocks();
        // A caller that needs the names of stuck tasks has called `shutdown`, or a drain has waited.
        let timeout = if self.crew.parting.is_stopped() { Duration::ZERO } else { DROP_TIMEOUT };
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
    let pool = or_panic(pool);
    let crew = or_panic(crew_of(&pool).and_then(|crew| crew.start(&pool).map(|()| crew)));
    spawn_on(&pool, crew, future, meta)
}

/// Spawns onto a crew whose workers run. If the crew accepts no tasks from this thread any more, drops the
/// future and returns a task that is cancelled. Aborts the child of a fork.
fn spawn_on<T: Send + 'static>(
    pool: &Arc<Pool>,
    crew: &Crew,
    future: impl Future<Output = T> + Send + 'static,
    meta: SpawnMeta<'_>,
) -> Task<T> {
    pool.reactor.assert_not_inherited();
    if !crew.accepts_from_here() {
        return pool.visit(|| spawn_in_vain(crew.state.clone(), Box::pin(future), meta.spawned_at));
    }
    // SAFETY: the future is `Send` and borrows nothing. If the workers stop meanwhile, the task is cancelled
    // with the others.
    unsafe { executor::spawn(crew.state.clone(), future, meta) }
}

/// Returns what was made of the default instance; panics if that failed. Other runtimes are made by
/// [`Builder::build`], which returns the error.
#[track_caller]
fn or_panic<T>(made: io::Result<T>) -> T {
    match made {
        Ok(made) => made,
        Err(error) => panic!("the default instance cannot be started: {error}"),
    }
}

/// Returns the crew of a pool. That of the default instance is made by the first call, which returns an error
/// if `PACELINE_THREADS` is invalid; its workers are not started here.
fn crew_of(pool: &Arc<Pool>) -> io::Result<&Arc<Crew>> {
    if let Some(crew) = pool.crew() {
        return Ok(crew);
    }
    let threads = threads_from_environment()?;
    Ok(pool.crew_or_found(|| (StateRef::forever(), Builder::default().crew(threads))))
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
    let pool = or_panic(current_pool());
    Metrics::of(&pool)
}

/// Returns the number that `PACELINE_THREADS` says, else the number of cores. Returns `InvalidInput` if the
/// variable is not a positive number.
fn threads_from_environment() -> io::Result<usize> {
    let Ok(text) = env::var("PACELINE_THREADS") else {
        return Ok(thread::available_parallelism().map_or(1, usize::from));
    };
    let wrong = format!("PACELINE_THREADS is {text:?}; it should be a positive number of threads");
    text.parse().map(NonZeroUsize::get).map_err(|_| invalid(wrong))
}

/// Returns the error for a setting that makes no sense.
fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}
