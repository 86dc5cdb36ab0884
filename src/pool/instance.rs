//! The default instance: the pool behind the free functions, one for each process.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError};

use super::annex::Annex;
use super::{Policy, Pool};
use crate::fork::Origin;
use crate::sync::{Mutex, MutexGuard, process_static};

/// Where the default instance of a process is. A child leaves its parent's as it is, with the lock, which a thread that it
/// has not may hold.
#[derive(Debug)]
struct Instance {
    origin: Origin,
    pool: Mutex<Option<Arc<Pool>>>,
    /// Of the process: there is one also where there is no pool.
    annex: Annex,
}

process_static! {
    /// Null, or a [`Instance`] that is never freed. Std's atomic, because the pool is behind a lock, which is where threads meet.
    static INSTANCE: AtomicPtr<Instance> = AtomicPtr::new(ptr::null_mut());
}

fn place() -> &'static Instance {
    // ORDER: Acquire pairs with the Release in `replace`: the instance as it was made.
    let known = INSTANCE.load(Ordering::Acquire);
    // SAFETY: a place that was published is never freed.
    match unsafe { known.as_ref() } {
        Some(instance) if instance.origin.is_here() => instance,
        _ => replace(known),
    }
}

fn instance() -> MutexGuard<'static, Option<Arc<Pool>>> {
    place().pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process's place, instead of `known`, which is none.
#[cold]
fn replace(known: *mut Instance) -> &'static Instance {
    let fresh = Instance { origin: Origin::here(), pool: Mutex::new(None), annex: Annex::default() };
    let fresh = Box::into_raw(Box::new(fresh));
    // ORDER: Release pairs with the Acquire here and in `instance`.
    match INSTANCE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it is published now, and so never freed.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: `fresh` was not published.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: a place that was published is never freed; this one is of the same process, whose only other
            // threads are its own.
            unsafe { &*other }
        }
    }
}

impl Pool {
    /// The default instance, made now if there is none yet.
    pub(crate) fn default_instance() -> io::Result<Arc<Self>> {
        let mut default = instance();
        if let Some(pool) = &*default {
            return Ok(pool.clone());
        }
        let pool = Self::new(Policy::default())?;
        pool.is_default.set(true);
        *default = Some(pool.clone());
        Ok(pool)
    }

    /// Whether there is a default instance.
    pub(crate) fn is_installed() -> bool {
        instance().is_some()
    }

    /// Makes `pool` the default instance. False if there is one already.
    pub(crate) fn install(pool: &Arc<Self>) -> bool {
        let mut default = instance();
        let free = default.is_none();
        if free {
            pool.is_default.set(true);
            *default = Some(pool.clone());
        }
        free
    }

    /// Ends the default instance: a scenario's process is over.
    #[cfg(all(test, paceline_shuttle))]
    pub(crate) fn end_default_instance() -> Option<Arc<Self>> {
        let default = instance().take();
        default.iter().for_each(|pool| pool.end());
        default
    }
}

/// What a layer above keeps with the default instance.
pub(super) fn annex_of_the_process() -> &'static Annex {
    &place().annex
}

/// The descriptor that the default instance waits on. That instance is never dropped.
#[cfg(unix)]
pub(crate) fn default_descriptor() -> Option<std::os::fd::BorrowedFd<'static>> {
    use std::os::fd::{AsRawFd, BorrowedFd};
    let pool = Pool::default_instance().ok()?;
    let fd = pool.reactor.descriptor()?.as_raw_fd();
    // SAFETY: its `Instance` keeps the pool, and with it the descriptor, until the process ends.
    Some(unsafe { BorrowedFd::borrow_raw(fd) })
}
