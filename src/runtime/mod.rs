//! [`Runtime`]: a pool with workers of its own, and the free functions that act on the default one.

mod builder;
mod metrics;
mod stuck;

pub use builder::Builder;
pub use metrics::Metrics;
pub use stuck::StuckError;

use std::env;
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::blocking;
use crate::executor::{StateRef, Task, spawn_at, spawn_in_vain};
use crate::pool::block_on::block_on_in;
use crate::pool::{Crew, Pool};
use crate::sync::Instant;

/// Threads that a runtime may have when all its usual ones are stuck.
const MAX_THREADS: usize = 512;

/// How long dropping a [`Runtime`] waits for tasks that block.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// Worker threads, their executor and their reactor.
///
/// Most programs need none: [`spawn`] and [`block_on`](crate::block_on()) act on a default instance. Build one to
/// have threads of your own number and kind, or two that do not disturb each other.
///
/// Dropping it stops its workers after the polls they are in and cancels its tasks; it waits no longer than a
/// tenth of a second for tasks that block. [`shutdown`](Runtime::shutdown) waits as long as you say, and then dropping it does
/// not wait again.
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
    /// It was shut down, so that dropping it waits for nobody.
    is_shut_down: AtomicBool,
}

impl Runtime {
    /// Starts to build a runtime.
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

    /// Runs a future on the current thread until it is done; what it spawns runs on the runtime's workers.
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
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        block_on_in(Some(&self.pool), future)
    }

    /// Spawns a future onto the workers. Dropping the [`Task`] cancels it; [`Task::detach`] lets it run on its own.
    ///
    /// After [`shutdown`](Runtime::shutdown) the future is dropped at once, and awaiting the task panics; in a `block_on` of
    /// paceline's the panic says why. [`Task::fallible`] gives `None` instead.
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
        spawn_on(&self.pool, &self.crew, future, Location::caller())
    }

    /// What the runtime has done so far, and has right now.
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

    /// Stops the workers after the polls they are in, waits for them no longer than `timeout`, and cancels all
    /// tasks: whoever awaits one panics, unless it is [`fallible`](Task::fallible). May be called again, and from inside a task:
    /// then it does not wait for that task's own thread. What [blocks on purpose](crate::blocking) and has not begun is cancelled, too;
    /// what runs there goes on and is not waited for. Sources and timers work on until the runtime is dropped.
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
    /// Names the tasks that still block their threads. Those threads end when their tasks let them.
    pub fn shutdown(&self, timeout: Duration) -> Result<(), StuckError> {
        if self.pool.is_inherited() {
            // Its threads are another process's, and nothing of it may be touched.
            return Ok(());
        }
        self.is_shut_down.store(true, Relaxed);
        blocking::end(&self.pool);
        let threads = self.crew.stop(&self.pool, Instant::now().checked_add(timeout));
        if threads.is_empty() { Ok(()) } else { Err(StuckError { threads, timeout }) }
    }
}

#[cfg(all(test, paceline_shuttle))]
impl Runtime {
    /// For scenarios, which look whether anything is left in it.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.pool.is_inherited() {
            return;
        }
        // Whoever wants to know what is stuck calls `shutdown`, and has waited then.
        let timeout = if self.is_shut_down.load(Relaxed) { Duration::ZERO } else { DROP_TIMEOUT };
        let _ = self.shutdown(timeout);
        self.pool.end();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("crew", &self.crew).finish_non_exhaustive()
    }
}

/// Spawns a future onto the runtime whose thread or task this is, else onto the default instance, whose workers
/// start with the first call: as many as there are cores, or as `PACELINE_THREADS` says.
///
/// ```
/// let task = paceline::spawn(async { 6 * 7 });
/// assert_eq!(paceline::block_on(task), 42);
/// ```
///
/// # Panics
///
/// If the workers of the default instance cannot be started, or `PACELINE_THREADS` is not a positive number. The next
/// call tries again.
#[track_caller]
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    spawn_from(future, Location::caller())
}

/// [`spawn`], for a task whose place in the user's source is `caller`.
pub(crate) fn spawn_from<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    caller: &'static Location<'static>,
) -> Task<T> {
    let hired = Pool::current().and_then(|pool| {
        let crew = match pool.crew() {
            Some(crew) => crew,
            // This thread's pool has no workers, so it is the default instance.
            None => {
                let threads = threads_from_environment()?;
                pool.crew_or_found(|| Builder::new().crew(StateRef::forever(), threads))
            }
        };
        crew.start(&pool)?;
        Ok(pool)
    });
    match hired {
        Ok(pool) => spawn_on(&pool, pool.crew().expect("it was just started"), future, caller),
        Err(error) => panic!("the default instance cannot be started: {error}"),
    }
}

/// What the default instance has done so far, and has right now: always that one, even when a task of another runtime
/// asks. Theirs is [`Runtime::metrics`].
///
/// ```
/// paceline::block_on(paceline::spawn(async {}));
/// assert!(paceline::metrics().polls_direct + paceline::metrics().polls_surplus > 0);
/// ```
///
/// # Panics
///
/// If there is no default instance yet and the process has no descriptor left to make one.
pub fn metrics() -> Metrics {
    match Pool::default_instance() {
        Ok(pool) => Metrics::of(&pool),
        Err(error) => panic!("the default instance cannot be started: {error}"),
    }
}

fn spawn_on<T: Send + 'static>(
    pool: &Arc<Pool>,
    crew: &Crew,
    future: impl Future<Output = T> + Send + 'static,
    caller: &'static Location<'static>,
) -> Task<T> {
    pool.assert_not_inherited();
    if crew.is_stopped() {
        // SAFETY: the future is `Send` and borrows nothing.
        return pool.visit(|| unsafe { spawn_in_vain(crew.state(), future, caller) });
    }
    // SAFETY: as above. If the workers stop meanwhile, it is cancelled with the others.
    unsafe { spawn_at(crew.state(), future, caller) }
}

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
