//! The context that foreign code finds on threads of this crate: tokio's, so that code that needs it works
//! there.
//!
//! There is one tokio runtime per process, which starts with the first thread that enters it, and stays. Its
//! own thread waits for tokio's sockets and timers, and runs tasks of `tokio::spawn`. A thread of this crate
//! enters the runtime once, when it begins to run foreign code, and leaves it when it ends: so no poll and no
//! wake has anything to do with it. Nested calls find the context in place.
//!
//! A thread that is in another tokio runtime stays there, because the program has put it there.
//!
//! A child of `fork` starts a tokio runtime of its own. The parent's runtime has no thread there, and its
//! epoll instance still belongs to the parent. So the child does not use its handle either, not even on the
//! thread that forked, which is in it.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor};

use crate::fork::Origin;

/// The tokio runtime of a process. A child leaves its parent's as it is; its lock may be held by a thread
/// that does not exist in the child.
struct Hidden {
    origin: Origin,
    /// Held by the thread that starts the runtime.
    starting: Mutex<()>,
    runtime: OnceLock<Runtime>,
}

/// Null, or a [`Hidden`] that is never freed. An atomic of `std`, because no model has tokio.
static HIDDEN: AtomicPtr<Hidden> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// The process whose runtime this thread has entered.
    static ENTERED: Cell<Option<Origin>> = const { Cell::new(None) };
    /// Whether this thread belongs to the hidden runtime: a worker, or a thread for `spawn_blocking`.
    static IS_HIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Marks that the thread runs foreign code, while the value exists.
pub(crate) struct Ambient(
    // Only to be dropped.
    #[expect(dead_code)] Option<Within>,
);

struct Within {
    _guard: EnterGuard<'static>,
    /// The value of [`ENTERED`] before, which the drop restores.
    below: Option<Origin>,
}

impl Drop for Within {
    fn drop(&mut self) {
        ENTERED.set(self.below);
    }
}

/// Announces that the calling thread runs foreign code from here on. The values have to be dropped in reverse
/// order, like frames on a stack.
///
/// If there can be no tokio runtime, because descriptors or threads have run out, the thread runs without;
/// code that needs the context reports that.
#[inline]
pub(crate) fn enter() -> Ambient {
    let here = Some(Origin::here());
    Ambient(if ENTERED.get() == here { None } else { enter_anew(here) })
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

/// Enters the hidden runtime; `here` is this process, for [`ENTERED`]. Returns `None`, and enters nothing,
/// if the thread is in a tokio runtime that the program has put it in, if its locals are destroyed, or if
/// the hidden runtime cannot be started.
#[cold]
fn enter_anew(here: Option<Origin>) -> Option<Within> {
    // If the thread has entered the runtime of another process, the present context most likely belongs to
    // that process, too.
    let is_free = ENTERED.get().is_some()
        || match Handle::try_current() {
            Ok(_) => false,
            // If the thread's locals are destroyed, no context can be entered.
            Err(error) => error.is_missing_context(),
        };
    if !is_free {
        return None;
    }
    let _guard = place().runtime().ok()?.enter();
    Some(Within { _guard, below: ENTERED.replace(here) })
}

/// Returns the handle of the hidden runtime, which starts if it has not.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    place().runtime().map(Runtime::handle)
}

/// Returns the place of this process's runtime. The first call in a process publishes a new one, also in a
/// child of `fork`. Starts no runtime, and frees no place.
fn place() -> &'static Hidden {
    // ORDER: Acquire pairs with the Release of `replace`: the value as it was made.
    let known = HIDDEN.load(Ordering::Acquire);
    // SAFETY: a published value is never freed.
    match unsafe { known.as_ref() } {
        Some(hidden) if hidden.origin.is_here() => hidden,
        _ => replace(known),
    }
}

/// Publishes a place for this process, in the stead of `known`, which is null or belongs to the parent.
/// Returns the place that is published: this one, or that of a thread that was faster.
#[cold]
fn replace(known: *mut Hidden) -> &'static Hidden {
    let fresh = Hidden { origin: Origin::here(), starting: Mutex::new(()), runtime: OnceLock::new() };
    let fresh = Box::into_raw(Box::new(fresh));
    // ORDER: Release pairs with the Acquire here and in `place`: the value as it was made.
    match HIDDEN.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the value is published now, and so never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: `fresh` was not published.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: a published value is never freed. `other` belongs to the same process, because only its
            // own threads can have replaced it.
            unsafe { &*other }
        }
    }
}

impl Hidden {
    /// Returns the runtime, which the first call starts. If that fails, the next call tries again.
    fn runtime(&self) -> io::Result<&Runtime> {
        match self.runtime.get() {
            Some(runtime) => Ok(runtime),
            None => self.start(),
        }
    }

    /// Starts the runtime. If another thread has started it meanwhile, returns that one. A panic of tokio,
    /// which gets no thread, becomes an error.
    #[cold]
    fn start(&self) -> io::Result<&Runtime> {
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        // On another thread, because tokio takes random numbers here. If this thread is in a simulation, its
        // next run would take fewer. tokio panics if it gets no thread.
        let runtime = thread::scope(|scope| {
            let builds = thread::Builder::new().spawn_scoped(scope, build)?;
            builds.join().unwrap_or_else(|_| Err(io::Error::other("tokio cannot start a thread")))
        })?;
        Ok(self.runtime.get_or_init(|| runtime))
    }
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
