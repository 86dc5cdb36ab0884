//! The context that foreign code finds on threads of this crate: tokio's, so that code that needs it works
//! there.
//!
//! There is one tokio runtime per process, which starts with the first thread that enters it, and stays. Its
//! own thread waits for tokio's sockets and timers, and runs tasks of `tokio::spawn`. A thread of this crate
//! enters the runtime once, when it begins to run foreign code, and leaves it when it ends: so no poll and no
//! wake has anything to do with it. Nested calls find the context in place.
//!
//! A thread that is in another tokio runtime stays there, because the program has put it there.

use std::cell::Cell;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor};

/// The tokio runtime of the process.
static HIDDEN: OnceLock<Runtime> = OnceLock::new();
/// Held by the thread that starts the runtime.
static BUILDING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread has entered the runtime.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread belongs to the hidden runtime: a worker, or a thread for `spawn_blocking`.
    static IS_HIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Marks that the thread runs foreign code, while the value exists.
pub(crate) struct Ambient(Option<EnterGuard<'static>>);

impl Drop for Ambient {
    fn drop(&mut self) {
        if self.0.is_some() {
            ENTERED.set(false);
        }
    }
}

/// Announces that the calling thread runs foreign code from here on. The values have to be dropped in reverse
/// order, like frames on a stack.
///
/// If there can be no tokio runtime, because descriptors or threads have run out, the thread runs without;
/// code that needs the context reports that.
#[inline]
pub(crate) fn enter() -> Ambient {
    Ambient(if ENTERED.get() { None } else { enter_anew() })
}

/// Announces that a thread of this crate runs foreign code for the rest of its life. Nothing is left to drop
/// at its end, so a context that a hook of the thread enters on top, and keeps, does no harm.
pub(crate) fn move_in() {
    std::mem::forget(enter());
}

/// Runs a closure that blocks the thread. On a worker of the hidden runtime, another thread takes over the
/// worker's tasks, sockets and timers meanwhile.
pub(crate) fn beside<R>(blocks: impl FnOnce() -> R) -> R {
    if IS_HIDDEN.get() && is_at_work() { tokio::task::block_in_place(blocks) } else { blocks() }
}

/// Returns whether this thread of the hidden runtime is a worker, and in no current-thread runtime. The
/// hidden runtime has other threads, for `spawn_blocking`: they hold up nothing, and in a current-thread
/// runtime or a `LocalSet` `block_in_place` would panic on them.
fn is_at_work() -> bool {
    // A thread in a current-thread runtime counts as that runtime's worker.
    let is_worker = tokio::runtime::worker_index().is_some();
    is_worker && Handle::try_current().is_ok_and(|here| here.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

/// Enters the hidden runtime. Returns `None`, and enters nothing, if the thread is in a tokio runtime that
/// the program has put it in, if its locals are destroyed, or if the hidden runtime cannot be started.
#[cold]
fn enter_anew() -> Option<EnterGuard<'static>> {
    let is_free = match Handle::try_current() {
        Ok(_) => false,
        // If the thread's locals are destroyed, no context can be entered.
        Err(error) => error.is_missing_context(),
    };
    if !is_free {
        return None;
    }
    let guard = runtime().ok()?.enter();
    ENTERED.set(true);
    Some(guard)
}

/// Returns the handle of the hidden runtime, which starts if it has not.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    runtime().map(Runtime::handle)
}

/// Returns the runtime, which the first call starts. If that fails, the next call tries again.
fn runtime() -> io::Result<&'static Runtime> {
    HIDDEN.get().map_or_else(start, Ok)
}

/// Starts the runtime. If another thread has started it meanwhile, returns that one. A panic of tokio,
/// which gets no thread, becomes an error.
#[cold]
fn start() -> io::Result<&'static Runtime> {
    let _starting = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = HIDDEN.get() {
        return Ok(runtime);
    }
    // On another thread, because tokio takes random numbers here. If this thread is in a simulation, its
    // next run would take fewer. tokio panics if it gets no thread.
    let started = thread::scope(|scope| {
        let builds = thread::Builder::new().spawn_scoped(scope, build)?;
        builds.join().unwrap_or_else(|_| Err(io::Error::other("tokio cannot start a thread")))
    })?;
    Ok(HIDDEN.get_or_init(|| started))
}

/// Builds the runtime, with one worker unless `TOKIO_WORKER_THREADS` says otherwise.
fn build() -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name("paceline-tokio").on_thread_start(|| IS_HIDDEN.set(true));
    // A program that wants more threads sets the variable that tokio reads.
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        builder.worker_threads(1);
    }
    builder.build()
}
