//! The default instance: the pool behind the free functions.

use std::io;
use std::sync::{Arc, OnceLock, Weak};

use super::Pool;
use crate::blocking_threads::Threads;
use crate::sync::{self, Mutex, process_static};

/// The place of the process's default instance.
#[derive(Debug, Default)]
struct Instance {
    pool: Mutex<Option<Arc<Pool>>>,
    /// The pools of all runtimes that were made in this process; some of them may be gone.
    all: Mutex<Vec<Weak<Pool>>>,
    /// The threads for closures that block, which exist without a pool, too.
    blocking: OnceLock<Arc<Threads>>,
}

process_static! {
    static INSTANCE: OnceLock<Instance> = OnceLock::new();
}

fn place() -> &'static Instance {
    INSTANCE.get_or_init(Instance::default)
}

impl Pool {
    /// Returns the default instance. If there is none, calls `make`, with the lock held, and keeps the pool
    /// until the process ends. If `make` fails, returns its error, and the next call tries again.
    pub(crate) fn default_or_make(make: impl FnOnce() -> io::Result<Arc<Self>>) -> io::Result<Arc<Self>> {
        let mut default = sync::lock(&place().pool);
        if let Some(pool) = &*default {
            return Ok(pool.clone());
        }
        let pool = make()?;
        pool.is_default.set(true);
        *default = Some(pool.clone());
        Ok(pool)
    }

    pub(crate) fn is_installed() -> bool {
        sync::lock(&place().pool).is_some()
    }

    /// Makes `pool` the default instance, which keeps it alive. Returns false, and changes nothing, if there
    /// is one already.
    pub(crate) fn install(pool: &Arc<Self>) -> bool {
        Self::default_or_make(|| Ok(pool.clone())).is_ok_and(|default| Arc::ptr_eq(&default, pool))
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
        let default = sync::lock(&place().pool).clone();
        let others: Vec<_> = sync::lock(&place().all).iter().filter_map(Weak::upgrade).collect();
        let others = others.into_iter().filter(|pool| !pool.is_default.is_set() && !pool.ended.is_set());
        default.into_iter().chain(others).collect()
    }

    /// Ends the default instance, at the end of a scenario's process.
    #[cfg(all(test, paceline_shuttle))]
    pub(crate) fn end_default_instance() -> Option<Arc<Self>> {
        let default = sync::lock(&place().pool).take();
        default.inspect(|pool| pool.end())
    }
}

/// Returns the place for the threads for closures that block in the default instance.
pub(super) fn blocking_of_the_process() -> &'static OnceLock<Arc<Threads>> {
    &place().blocking
}
