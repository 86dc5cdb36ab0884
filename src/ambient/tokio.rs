//! What code of others finds on our threads: tokio's context, so that what asks for one works there.
//!
//! There is one tokio runtime for each process, which starts with the first thread that enters it, and stays. Its own thread waits for
//! tokio's sockets and timers, and runs what is given to `tokio::spawn`. A thread of ours enters it once, when it begins to run code of
//! others, and leaves it when it ends: so no poll and no wake has anything to do with it. What is nested finds it in place.
//!
//! A thread that is in another tokio runtime stays there: whoever brought it knows why.
//!
//! A child of `fork` starts one of its own. Its parent's has no thread there, and its epoll instance is still the parent's, so not even
//! its handle is used: not on the thread that forked either, which is in it.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

use crate::fork::Origin;

/// A process's tokio runtime. A child leaves its parent's as it is, with the lock, which a thread that it has not may hold.
struct Hidden {
    origin: Origin,
    /// Held by who starts it.
    starting: Mutex<()>,
    runtime: OnceLock<Runtime>,
}

/// Null, or a [`Hidden`] that is never freed. Std's atomic, because no model has tokio.
static HIDDEN: AtomicPtr<Hidden> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// This thread has entered the runtime of that process.
    static ENTERED: Cell<Option<Origin>> = const { Cell::new(None) };
    /// This thread is one of the hidden runtime's.
    static IS_HIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// The thread runs code of others, as long as the value is there.
pub(crate) struct Ambient(
    // Only to be dropped.
    #[expect(dead_code)] Option<Within>,
);

struct Within {
    _guard: EnterGuard<'static>,
    below: Option<Origin>,
}

impl Drop for Within {
    fn drop(&mut self) {
        ENTERED.set(self.below);
    }
}

/// From here on the calling thread runs code of others. Values are dropped in the reverse order, as frames on a stack are.
///
/// Where there can be no tokio runtime, because descriptors or threads have run out, the thread does without; what asks for one
/// says so.
#[inline]
pub(crate) fn enter() -> Ambient {
    let here = Some(Origin::here());
    Ambient(if ENTERED.get() == here { None } else { enter_anew(here) })
}

/// From here on a thread of ours does, as long as it lives. There is nothing to drop at its end, so whatever its hook enters on top, and
/// keeps, is in nobody's way.
pub(crate) fn move_in() {
    std::mem::forget(enter());
}

/// Does what blocks the thread: if that is the hidden runtime's, another one sees to its tasks, sockets and timers meanwhile.
pub(crate) fn beside<R>(blocks: impl FnOnce() -> R) -> R {
    if IS_HIDDEN.get() { tokio::task::block_in_place(blocks) } else { blocks() }
}

#[cold]
fn enter_anew(here: Option<Origin>) -> Option<Within> {
    // With an entry that is not this process's, what is found is most likely that process's, too.
    let is_free = ENTERED.get().is_some()
        || match Handle::try_current() {
            Ok(_) => false,
            // Where the thread is past its thread-locals, nothing can be entered.
            Err(error) => error.is_missing_context(),
        };
    if !is_free {
        return None;
    }
    let _guard = place().runtime().ok()?.enter();
    Some(Within { _guard, below: ENTERED.replace(here) })
}

/// The hidden runtime's handle, which starts it if need be.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    place().runtime().map(Runtime::handle)
}

/// This process's.
fn place() -> &'static Hidden {
    // ORDER: Acquire pairs with the Release below: the value as it was made.
    let known = HIDDEN.load(Ordering::Acquire);
    // SAFETY: one that was published is never freed.
    match unsafe { known.as_ref() } {
        Some(hidden) if hidden.origin.is_here() => hidden,
        _ => replace(known),
    }
}

#[cold]
fn replace(known: *mut Hidden) -> &'static Hidden {
    let fresh = Hidden { origin: Origin::here(), starting: Mutex::new(()), runtime: OnceLock::new() };
    let fresh = Box::into_raw(Box::new(fresh));
    // ORDER: Release pairs with the Acquire here and in `place`.
    match HIDDEN.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it is published now, and so never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: `fresh` was not published.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: one that was published is never freed; this one is of the same process, whose only other threads are its own.
            unsafe { &*other }
        }
    }
}

impl Hidden {
    fn runtime(&self) -> io::Result<&Runtime> {
        match self.runtime.get() {
            Some(runtime) => Ok(runtime),
            None => self.start(),
        }
    }

    #[cold]
    fn start(&self) -> io::Result<&Runtime> {
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let mut builder = Builder::new_multi_thread();
        builder.enable_all().thread_name("paceline-tokio").on_thread_start(|| IS_HIDDEN.set(true));
        // Whoever wants more says so by the variable that tokio reads.
        if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
            builder.worker_threads(1);
        }
        // Where it gets no thread, it panics.
        let runtime = catch_unwind(AssertUnwindSafe(|| builder.build()));
        let runtime = runtime.unwrap_or_else(|_| Err(io::Error::other("tokio cannot start a thread")))?;
        Ok(self.runtime.get_or_init(|| runtime))
    }
}
