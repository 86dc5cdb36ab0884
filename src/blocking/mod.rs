//! Threads that never lead: for code that blocks on purpose.
//!
//! A task that blocks its thread is survived, but it keeps a worker. What blocks for long, or often, belongs here: the threads of
//! this pool run one job at a time, first come first served, and nothing else.
//!
//! | to do | with |
//! |---|---|
//! | run a closure, and await what it returns | [`unblock`](unblock()) |
//! | read, write or iterate over what blocks: files, standard input, pipes of child processes | [`Unblock`] |
//! | run a closure for so long and no longer, and go on without it | [`Job`] |
//!
//! Each [`Runtime`](crate::Runtime) has a pool of such threads, and the process has one for everybody else; a call acts on that of the
//! runtime whose thread or task it is made from. Threads start when there is something to do, up to a limit
//! ([`Builder::blocking_threads`](crate::Builder::blocking_threads); `PACELINE_BLOCKING_THREADS` for the default instance; else 500),
//! and go after a second without work. Free functions called in a job act on the runtime whose job it is.
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
//! [`Runtime::shutdown`](crate::Runtime::shutdown) and the drop of a runtime cancel what waits in its pool, as they cancel tasks, and
//! wait for nobody who runs there: a job goes on until it returns, its thread ends then, and whoever awaits it has its result. So
//! it is with a deadline. What is submitted later is cancelled at once.
//!
//! [`Runtime::drain`](crate::Runtime::drain) lets what waits or runs come to its end until its deadline. Then it does the same, and names what
//! goes on; and so it does with what was lost before, but does not wait for that. Streams are their tasks' matter: nobody waits for one whose
//! task is gone, so flush them, or close them, in there.
// The README beside this file has the states of a job, and who is answerable for its deadline.

mod bell;
mod error;
mod handle;
mod items;
mod job;
mod pipe;
mod shared;
mod state;
mod streams;
mod threads;
mod unblock;
mod work;

pub use error::JobError;
pub use handle::{Cancelled, JobHandle};
pub use job::Job;
pub(crate) use threads::Figures;
pub use unblock::Unblock;

use std::future::Future;
use std::num::NonZeroUsize;
use std::panic::Location;
use std::sync::Arc;
use std::{env, io};

use async_task::{Builder, Runnable, Task};

use crate::pool::{self, Backstage, ClockHeld, Pool};
use threads::Threads;
use work::Work;

/// As many threads as there may be if nothing is said.
const MAX_THREADS: usize = 500;

/// Runs a closure that blocks on a thread of its own kind, and gives what it returns.
///
/// Dropping the [`Task`] cancels the closure if it has not begun; [`Task::detach`] lets it run. A panic in it is raised in whoever
/// awaits the task. For a closure that may never return, see [`Job`].
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
/// If there is no thread in the pool, and none can be started; or if `PACELINE_BLOCKING_THREADS` is not a positive number, and
/// this is the first call that needs it.
#[track_caller]
pub fn unblock<T, F>(f: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn(async move { f() }, Some(Location::caller())).unwrap_or_else(|error| panic!("{error}"))
}

/// How many threads the pool of the process may have from now on: that of the default instance, whoever asks.
///
/// Those that are more go when they have nothing to do.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
/// paceline::blocking::set_max_blocking_threads(NonZeroUsize::new(100).unwrap());
/// ```
pub fn set_max_blocking_threads(threads: NonZeroUsize) {
    of_the_process().set_limit(threads.get());
}

/// Spawns a future onto the threads of the runtime whose thread or task this is. One without a place is a stream's.
fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    made_at: Option<&'static Location<'static>>,
) -> io::Result<Task<T>> {
    let threads = current();
    let wakes = threads.clone();
    let schedule = move |task: Runnable| {
        // Where there is no thread at all, what waited for one was cancelled: who awaits it finds out.
        let _ = wakes.submit(Work::Task(task, made_at, None));
    };
    let (runnable, task) = Builder::new().propagate_panic(true).spawn(|()| future, schedule);
    // A stream may wait for its other end for ever; a closure comes to its end.
    let held = made_at.is_some().then(ClockHeld::here);
    threads.submit(Work::Task(runnable, made_at, held))?;
    Ok(task)
}

/// The threads of the runtime whose thread or task this is, else of the process.
fn current() -> Arc<Threads> {
    pool::current_annex(|pool| match pool {
        Some(pool) => Threads::new(MAX_THREADS, Some(pool)),
        None => Threads::new(limit_from_environment(), None),
    })
}

fn of_the_process() -> Arc<Threads> {
    pool::default_annex(|| Threads::new(limit_from_environment(), None))
}

/// A runtime is being built, and may have so many threads.
pub(crate) fn limit(pool: &Arc<Pool>, threads: usize) {
    let own: Arc<Threads> = pool.annex(|| Threads::new(threads, Some(pool)));
    own.set_limit(threads);
}

/// The default instance was built by hand, and may have so many.
pub(crate) fn limit_default(threads: usize) {
    of_the_process().set_limit(threads);
}

/// What blocks for a runtime, which ends: made if there is nothing, so that nothing is made later.
pub(crate) fn behind(pool: &Arc<Pool>) -> Arc<dyn Backstage> {
    pool.annex(|| Threads::new(MAX_THREADS, Some(pool)))
}

/// What the threads of a pool have done.
pub(crate) fn figures(pool: &Pool) -> Figures {
    pool.annex_if_any::<Threads>().map_or(Figures::default(), |threads| threads.figures())
}

fn limit_from_environment() -> usize {
    let Ok(text) = env::var("PACELINE_BLOCKING_THREADS") else { return MAX_THREADS };
    match text.parse().map(NonZeroUsize::get) {
        Ok(threads) => threads,
        Err(_) => {
            panic!("PACELINE_BLOCKING_THREADS is {text:?}; it should be a positive number of threads")
        }
    }
}
