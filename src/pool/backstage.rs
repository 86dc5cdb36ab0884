//! [`Backstage`]: what a runtime has running behind its tasks, as its end sees it. A layer above keeps that with the pool: the
//! threads that block on purpose.

use super::patience::Who;
use crate::sync::thread;

/// Work that blocks, and its threads.
pub(crate) trait Backstage: Send + Sync {
    /// How many pieces of work wait or run, for which somebody may still wait. `keeper` is unparked when there are none, from now on until
    /// it is closed.
    fn left(&self, keeper: &thread::Thread) -> usize;

    /// Takes nothing any more, and has nothing begin. Returns how many pieces never will, because it was closed. Runs nobody's code.
    fn close(&self) -> usize;

    /// How many such were not dropped yet.
    fn laden(&self) -> usize;

    /// Drops them.
    fn clear(&self);

    /// What runs.
    fn at_work(&self) -> Vec<AtWork>;
}

/// A piece of work that runs.
#[derive(Debug)]
pub(crate) struct AtWork {
    pub(crate) who: Who,
    /// Tells it from all others.
    pub(crate) number: u64,
    pub(crate) name: String,
    /// Nobody has waited for it any more since its own deadline passed.
    pub(crate) is_lost: bool,
}
