//! The default instance: the pool behind the free functions, one for each process.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, Weak};

use super::{Pool, requests};
use crate::blocking_threads::Threads;
use crate::fork::Origin;
use crate::sync::{self, Mutex, MutexGuard, process_static};

/// The place of a process's default instance. A child of `fork` leaves its parent's place alone, with the
/// lock: a thread that the child does not have may hold it.
#[derive(Debug)]
struct Instance {
    origin: Origin,
    pool: Mutex<Option<Arc<Pool>>>,
    /// The pools of all runtimes that were made in this process; some of them may be gone.
    all: Mutex<Vec<Weak<Pool>>>,
    /// The threads for closures that block, which exist without a pool, too.
    blocking: OnceLock<Arc<Threads>>,
}

process_static! {
    /// Null, or an [`Instance`] that is never freed. An atomic of std, because threads synchronize by the
    /// lock of the pool.
    static INSTANCE: AtomicPtr<Instance> = AtomicPtr::new(ptr::null_mut());
}

/// Returns this process's place, and makes one if there is none.
fn place() -> &'static Instance {
    // ORDER: Acquire pairs with the Release in `replace`: the contents of the instance are visible.
    let known = INSTANCE.load(Ordering::Acquire);
    // SAFETY: the pointer is null or was published in `replace`, and a published instance is never freed.
    match unsafe { known.as_ref() } {
        Some(instance) if instance.origin.is_here() => instance,
        _ => replace(known),
    }
}

fn instance() -> MutexGuard<'static, Option<Arc<Pool>>> {
    place().pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process's place, in place of `known`, and returns it; or the place that another thread made
/// meanwhile. `known` is null, or the place of another process.
#[cold]
fn replace(known: *mut Instance) -> &'static Instance {
    let (pool, all) = (Mutex::new(None), Mutex::new(Vec::new()));
    let fresh = Instance { origin: Origin::here(), pool, all, blocking: OnceLock::new() };
    let fresh = Box::into_raw(Box::new(fresh));
    // ORDER: Release pairs with the Acquire here and in `place`: it publishes the contents of the instance.
    match INSTANCE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the box is published now, and never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: `fresh` comes from `Box::into_raw` above, and was not published.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: a published instance is never freed. This one was published after `known`, by another
            // thread of this process.
            unsafe { &*other }
        }
    }
}

impl Pool {
    /// Returns the default instance. If there is none, calls `make`, with the lock held, and keeps the pool
    /// until the process ends. If `make` fails, returns its error, and the next call tries again.
    pub(crate) fn default_or_make(make: impl FnOnce() -> io::Result<Arc<Self>>) -> io::Result<Arc<Self>> {
        if let Some(pool) = &*instance() {
            return Ok(pool.clone());
        }
        // Before the lock is taken, because this may print: standard error may be full.
        requests::read();
        let mut default = instance();
        if let Some(pool) = &*default {
            return Ok(pool.clone());
        }
        let pool = make()?;
        pool.is_default.set(true);
        *default = Some(pool.clone());
        Ok(pool)
    }

    /// Returns whether there is a default instance.
    pub(crate) fn is_installed() -> bool {
        instance().is_some()
    }

    /// Makes `pool` the default instance, which keeps it alive. Returns false, and changes nothing, if there
    /// is one already.
    pub(crate) fn install(pool: &Arc<Self>) -> bool {
        let mut default = instance();
        let free = default.is_none();
        if free {
            pool.is_default.set(true);
            *default = Some(pool.clone());
        }
        free
    }

    /// Adds this pool to those that [`all`](Self::all) returns. Before the list grows, removes the pools
    /// that are gone, so the list is at most about twice as long as the number of pools.
    pub(crate) fn publish(self: &Arc<Self>) {
        let mut all = sync::lock(&place().all);
        if all.len() == all.capacity() {
            all.retain(|pool| pool.strong_count() > 0);
        }
        all.push(Arc::downgrade(self));
    }

    /// Returns the default instance, if there is one; then the pools of all runtimes of this process that
    /// were not dropped, in the order in which they were made.
    pub(crate) fn all() -> Vec<Arc<Self>> {
        let default = instance().clone();
        let others: Vec<_> = sync::lock(&place().all).iter().filter_map(Weak::upgrade).collect();
        let others = others.into_iter().filter(|pool| !pool.is_default.is_set() && !pool.is_ended());
        default.into_iter().chain(others).collect()
    }

    /// Ends the default instance, at the end of a scenario's process.
    #[cfg(all(test, paceline_shuttle))]
    pub(crate) fn end_default_instance() -> Option<Arc<Self>> {
        let default = instance().take();
        if let Some(pool) = &default {
            pool.end();
        }
        default
    }
}

/// Returns the place for the threads for closures that block in the default instance.
pub(super) fn blocking_of_the_process() -> &'static OnceLock<Arc<Threads>> {
    &place().blocking
}
