//! Threads that never lead, for code that blocks on purpose.
//!
//! A runtime survives a task that blocks its thread, but the task keeps a worker. Code that blocks for long,
//! or often, belongs here: the threads of this pool run one job at a time, first come first served, and
//! nothing else.
//!
//! | to do | with |
//! |---|---|
//! | run a closure, and await its result | [`unblock`](unblock()) |
//! | read, write or iterate over blocking sources: files, standard input, pipes of children | [`Unblock`] |
//! | use files that belong to the node in a simulation | [`fs`] in place of [`std::fs`] |
//! | run a closure with a deadline, and continue without it | [`Job`] |
//!
//! Each [`Runtime`](crate::Runtime) has a pool of such threads, and the process has one for all other
//! callers. A call acts on the pool of the runtime whose thread or task makes it. Threads start when there is
//! work, up to a limit ([`Builder::blocking_threads`](crate::Builder::blocking_threads);
//! `PACELINE_BLOCKING_THREADS` for the default instance; else 500), and end after a second without work. Free
//! functions called in a job act on the runtime of that job.
//!
//! ```
//! use paceline::blocking;
//!
//! # fn main() -> std::io::Result<()> {
//! let manifest = paceline::block_on(blocking::unblock(|| std::fs::read_to_string("Cargo.toml")))?;
//! assert!(manifest.contains("paceline"));
//! # Ok(())
//! # }
//! ```
//!
//! # When a runtime ends
//!
//! [`Runtime::shutdown`](crate::Runtime::shutdown) and the drop of a runtime cancel the jobs that wait in its
//! pool, as they cancel tasks, and do not wait for running ones: such a job runs until it returns, then its
//! thread ends, and the task that awaits it gets its result. Its deadline still holds. A job that is
//! submitted later is cancelled at once.
//!
//! [`Handle::drain`](crate::Handle::drain) lets waiting and running jobs come to their end until its
//! deadline. Then it does the same, and names the jobs that still run. The drain names lost jobs, too, but
//! does not wait for them. A drain does not wait for a stream whose task is gone, so flush or close streams
//! in their tasks.
// The README beside this file has the states of a job, and names the thread that answers for its deadline.

mod bell;
mod error;
mod handle;
mod items;
mod job;
mod pipe;
mod shared;
mod state;
mod streams;
mod token;
mod unblock;

pub use error::JobError;
pub use handle::JobHandle;
pub use job::Job;
pub use token::CancelToken;
pub use unblock::Unblock;

#[doc(hidden)]
pub use crate::simulated::for_tokio as sync_fs;
pub use crate::simulated::fs;

use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::panic::Location;

use async_task::{Builder, Runnable, Task};

use crate::blocking_threads::Work;
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool;
use crate::waking::Contained;

/// Runs a blocking closure on a thread that may block, and returns a task with its result.
///
/// Dropping the [`Task`] cancels the closure if it has not begun; [`Task::detach`] lets it run. A panic in
/// the closure resumes where the task is awaited. For a closure that may never return, see [`Job`]. If the
/// runtime has ended, the closure is cancelled: then awaiting the task panics.
///
/// # Examples
///
/// ```
/// let answer = paceline::block_on(paceline::unblock(|| 6 * 7));
/// assert_eq!(answer, 42);
/// ```
///
/// # Panics
///
/// Panics if there is no thread in the pool and none can be started; or if `PACELINE_BLOCKING_THREADS` is not
/// a positive number, and this is the first call that needs it.
#[doc(alias = "spawn_blocking")]
#[track_caller]
pub fn unblock<T, F>(f: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let meta = SpawnMeta::new(TaskKind::Blocking, Location::caller());
    match unblock_with(f, meta.of_inner_size(size_of::<F>())) {
        Ok(task) => task,
        // Not in a closure, which would be named as the place of the panic.
        Err(error) => panic!("{error}"),
    }
}

/// Runs a closure as [`unblock`](unblock()) does. This is for the package that replaces tokio, which observes
/// its closures itself.
///
/// # Errors
///
/// Returns an error if there is no thread in the pool and none can be started.
#[doc(hidden)]
pub fn unblock_with<T, F>(f: F, meta: SpawnMeta<'_>) -> io::Result<Task<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn(async move { f() }, Some(meta))
}

/// Runs a closure as [`unblock`](unblock()) does, for callers that report errors instead of panicking.
///
/// # Errors
///
/// Returns an error if there is no thread in the pool and none can be started, or if the runtime of the pool
/// ends before the closure begins.
///
/// # Panics
///
/// Panics if the closure does.
#[track_caller]
pub(crate) fn try_unblock<T, F>(f: F) -> impl Future<Output = io::Result<T>> + Send
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let meta = SpawnMeta::new(TaskKind::Blocking, Location::caller()).of_inner_size(size_of::<F>());
    let task = spawn(async move { f() }, Some(meta));
    async move {
        let ended = || {
            io::Error::other("it was cancelled: its runtime has ended, or no thread could be started for it")
        };
        // The system's kind would be `WouldBlock`, which means something else to callers.
        task.map_err(io::Error::other)?.fallible().await.ok_or_else(ended)
    }
}

/// Sets how many threads the pool of the process may have from now on: that of the default instance, whatever
/// runtime the caller is in. The crate `blocking` has this function; a program that knows the number from the
/// start sets [`Builder::blocking_threads`](crate::Builder::blocking_threads) and
/// [installs](crate::Builder::install) the runtime, or sets `PACELINE_BLOCKING_THREADS`.
///
/// Surplus threads end when they have no work.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
/// paceline::blocking::set_max_blocking_threads(NonZeroUsize::new(100).unwrap());
/// ```
pub fn set_max_blocking_threads(threads: NonZeroUsize) {
    pool::default_blocking().set_limit(threads.get());
}

/// Spawns a future onto the threads of the runtime whose thread or task this is. A future without `meta`
/// belongs to a stream, and does not hold the clock. Returns an error if there is no thread and none can be
/// started; if the runtime has ended, returns a task that is cancelled.
fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    meta: Option<SpawnMeta<'_>>,
) -> io::Result<Task<T>> {
    let threads = pool::current_blocking();
    let made_at = meta.map(|meta| meta.spawned_at);
    let future = meta.unwrap_or(SpawnMeta::unobserved(Location::caller())).watch(future);
    let wakes = threads.clone();
    let schedule = move |task: Runnable| {
        // If there is no thread at all, the waiting work was cancelled, and the task that awaits it is told.
        let _ = wakes.submit(Work::Task(task, made_at, None));
    };
    let future = Contained::new(future);
    let (runnable, task) = Builder::new().propagate_panic(true).spawn(|()| future, schedule);
    // A stream may wait for its other end for ever, so it does not hold the clock; a closure comes to its
    // end.
    let held = made_at.is_some().then(pool::hold_clock);
    threads.submit(Work::Task(runnable, made_at, held))?;
    Ok(task)
}
