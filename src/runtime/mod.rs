//! [`Runtime`]: a pool with workers of its own, and the free functions that act on the default one.

mod builder;
mod handle;
mod metrics;
mod stuck;

pub use builder::Builder;
pub use handle::{Entered, Handle};
pub use metrics::Metrics;
pub use stuck::StuckError;

use std::env;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::num::NonZeroUsize;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::blocking;
use crate::executor::{StateRef, Task, spawn_at, spawn_in_vain};
use crate::io::Timer;
use crate::pool::block_on::block_on_in;
use crate::pool::{Crew, Drained, Pool, ThreadInfo};
use crate::sync::Instant;

/// Threads that a runtime may have when all its usual ones are stuck.
const MAX_THREADS: usize = 512;

/// How long dropping a [`Runtime`] waits for tasks that block.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// When a drain tries again to get a thread for itself.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// Worker threads, their executor and their reactor.
///
/// Most programs need none: [`spawn`] and [`block_on`](crate::block_on()) act on a default instance. Build one to
/// have threads of your own number and kind, or two that do not disturb each other.
///
/// Dropping it stops its workers after the polls they are in and cancels its tasks; it waits no longer than a
/// tenth of a second for tasks that block, and for destructors while they get on (25 ms for one that does not, 10 s in all). [`shutdown`](Runtime::shutdown) waits as long as you say, and then dropping it does
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
    #[track_caller]
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

    /// A reference to it for code that is not on its threads.
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

    /// What each of its threads is at: the workers, in the order in which they came, and whoever else is in a `block_on` of it.
    /// Threads for what [blocks on purpose](crate::blocking) are none of these, nor are the first moments of one that is being started.
    ///
    /// Cheap, and safe to call at any time and from anywhere: in a task, in a hook, while it shuts down or drains. The threads do
    /// nothing for it, and nobody waits for anybody but for a lock that is held for some instructions. They are looked at one after the
    /// other while they go on: it is close, not a snapshot; but never do two of them lead. What lasts less than a tick or two of the
    /// deputy's ([`max_blind`](Builder::max_blind)) is not told apart. Once it was shut down, and nothing is stuck, no worker is left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Role;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// runtime.spawn(async { std::thread::sleep(Duration::from_millis(200)) }).detach();
    /// let blocked = loop {
    ///     if let Some(thread) = runtime.threads().into_iter().find(|thread| thread.role == Role::Blocks) {
    ///         break thread;
    ///     }
    /// };
    /// println!("{blocked}");    // paceline-1 blocks for 1.0ms, in the task spawned at src/main.rs:6:9
    /// assert_eq!(blocked.spawned_at.unwrap().file(), file!());
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(&self) -> Vec<ThreadInfo> {
        self.pool.threads()
    }

    /// Ends the runtime without haste, and reports. Its tasks have until the `deadline`, which counts from this call.
    ///
    /// 1. From the first poll of what this returns, no new task is accepted: what is spawned is cancelled at once, its
    ///    [`fallible`](Task::fallible) form gives `None`. That is so for tasks that are left, too.
    /// 2. What runs may finish until the deadline: tasks, and closures that [block](crate::blocking), also those that wait for a thread or
    ///    that tasks which are left submit. Streams that block are their tasks' matter. A `deadline` of zero leaves no time, one that is
    ///    too long for the clock all of it.
    /// 3. Then it is cancelled: each future is dropped at its next await. Destructors run, on the runtime's threads, and on others that are
    ///    started for that where all of these are stuck. Closures that have not begun never do, and the tokens of [jobs](crate::blocking::Job)
    ///    that run say so.
    /// 4. The report says how many tasks finished and how many were cancelled, and names those that still keep their thread, in a poll or
    ///    a destructor; and the closures that still run. For those it is said to be so that 25 milliseconds were not enough: asleep or of processor
    ///    time, because who only waits for a core is not stuck, and is waited for up to five seconds. Who drops one future after the other is
    ///    not stuck either, and is waited for up to ten; nor, for half a second, is a thread that is in neither. What is stuck is cancelled when its poll ends.
    /// 5. Tasks that await the report have it, and are cancelled at the await that comes after that: each is polled once more at least.
    ///
    /// It ends as soon as neither a task nor a closure is left. Then the runtime is as after [`shutdown`](Runtime::shutdown), and dropping it
    /// waits for nobody.
    ///
    /// It may be awaited anywhere: in a task of this very runtime, in a `block_on`, under any executor. A task that awaits it
    /// counts neither as finished nor as cancelled nor as stuck; so does one that waits for it in a `block_on` of its own. All others that were
    /// there are in one of these numbers. (It is known by the runtime that polls it; one that awaits it in an executor that the task runs itself is a
    /// task like any other, and cancelled with the others.)
    ///
    /// All that drain a runtime, at once or one after the other, get the same report; the earliest of their deadlines counts. If
    /// it is shut down or dropped meanwhile, what is left is cancelled, and the report comes then. On a runtime that was shut down
    /// before, there is nothing left to finish, and the report says what is stuck.
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
    /// assert_eq!((report.finished, report.cancelled), (1, 1));
    /// assert_eq!(runtime.block_on(runtime.spawn(async {}).fallible()), None);
    /// println!("{report}");    // drained in 50ms: 1 task finished, 1 was cancelled
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Once it was polled it goes on, also if it is dropped; call it again for the report. (Where the process can start no thread, it goes on
    /// only while somebody awaits it, who tries again now and then; and the third step is done in a poll of his.)
    pub fn drain(&self, deadline: Duration) -> impl Future<Output = Drained> + Send + use<> {
        drain(self.pool.clone(), Instant::now().checked_add(deadline))
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
        let until = Instant::now().checked_add(timeout);
        let threads = self.crew.stop(&self.pool, until, &blocking::behind(&self.pool));
        if threads.is_empty() { Ok(()) } else { Err(StuckError { threads, timeout }) }
    }
}

#[cfg(all(test, not(paceline_loom)))]
impl Runtime {
    /// For scenarios, which look whether anything is left in it; and for tests of what the deputy does.
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
    spawn_in(Pool::current(), future, caller)
}

/// The same onto the default instance, whatever runtime this is in.
pub(crate) fn spawn_by_default<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    caller: &'static Location<'static>,
) -> Task<T> {
    spawn_in(Pool::default_instance(), future, caller)
}

/// Spawns onto a pool whose workers may not have been started.
fn spawn_in<T: Send + 'static>(
    pool: io::Result<Arc<Pool>>,
    future: impl Future<Output = T> + Send + 'static,
    caller: &'static Location<'static>,
) -> Task<T> {
    let hired = pool.and_then(|pool| {
        let crew = match pool.crew() {
            Some(crew) => crew,
            // This pool has no workers, so it is the default instance.
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

/// Ends the pool's crew, and what blocks for it.
async fn drain(pool: Arc<Pool>, deadline: Option<Instant>) -> Drained {
    let backstage = blocking::behind(&pool);
    // On its own reactor, which has threads: for another one none might be had.
    let pause = || {
        let mut timer = Timer::after(TRY_AGAIN);
        let pool = &pool;
        poll_fn(move |cx| pool.visit(|| Pin::new(&mut timer).poll(cx)))
    };
    pool.clone().drain(deadline, backstage, pause).await
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
    if crew.is_closed() {
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
