//! Oversight: which deputies look at an executor, and how they are told that there may be something to see.
//!
//! A runner that is hosted by this crate's `block_on` is watched by the deputy of its pool. No deputy knows
//! a *stranger*: a ticker, or a runner in a foreign `block_on`. A stranger may be woken for a task and not
//! come, because its thread blocks in something else. So an executor with several runners or tickers, at
//! least one of them a stranger, is shown to the default instance's deputy. A stranger that is alone needs
//! no deputy, because no other runner could take its tasks.

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
