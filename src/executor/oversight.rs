//! Oversight: which deputies look at an executor, and how they are told that there may be something to see.
//!
//! The deputy of a pool watches the runners that threads of the pool host, and so the tasks of their
//! executors. No deputy watches a *stranger*: a ticker, or a runner in a foreign `block_on`. So no task is
//! left to a stranger alone: tasks that are woken on its thread go to the injector, and a stranger that takes
//! a task wakes another runner for the rest. But a stranger that was woken for a task may not come, because
//! its thread blocks in something else. If a pool hosts another runner of the executor, the deputy notices.
//! If only strangers run it, the task and later ones wait for that thread, as in `async-executor`.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::sync::{self, Flag, Mutex};

/// A deputy that looks at executors.
pub(crate) trait Overseer: Send + Sync {
    /// Makes the deputy look, because there may be something to see.
    fn look(self: Arc<Self>);
}

/// The deputies that look at one executor.
pub(crate) struct Alarms {
    /// Replaced as a whole, so that `call` does not copy the list.
    overseers: Mutex<Arc<[Weak<dyn Overseer>]>>,
    /// Whether there ever was a deputy.
    any: Flag,
}

impl Alarms {
    pub(super) fn new() -> Self {
        Self { overseers: Mutex::new(Arc::new([])), any: Flag::new(false) }
    }

    /// Adds a deputy, unless it is there already. The caller looks at the executor after this, for alarms
    /// that came before it.
    pub(crate) fn add(&self, overseer: Weak<dyn Overseer>) {
        let mut overseers = sync::lock(&self.overseers);
        if !overseers.iter().any(|other| Weak::ptr_eq(other, &overseer)) {
            let others = overseers.iter().filter(|other| other.strong_count() > 0).cloned();
            *overseers = others.chain([overseer]).collect();
        }
        self.any.set(true);
    }

    /// Returns whether there may be a deputy to tell.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.is_set()
    }

    /// Makes all deputies look: wakes those that sleep, and starts those that are missing where a pool needs
    /// one.
    #[cold]
    pub(crate) fn call(&self) {
        let overseers = sync::lock(&self.overseers).clone();
        overseers.iter().filter_map(Weak::upgrade).for_each(|overseer| overseer.look());
    }
}

impl fmt::Debug for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarms").field("any", &self.any).finish_non_exhaustive()
    }
}
