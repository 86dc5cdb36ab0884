//! Oversight: which deputies look at an executor, and how they are told that there is something to see.
//!
//! A runner that is hosted in our own `block_on` is known to the deputy of its pool. A stranger, that is a thread in
//! somebody else's `block_on` or a ticker, is known to none, and may be told of a task and not come, because its thread blocks
//! in something else. So an executor with more than one runner of which one is a stranger is shown to the default
//! instance's deputy. A stranger that is alone needs none, there is nobody else to be told.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::sync::{self, Flag, Mutex};

/// Somebody who looks at executors, and is told when there is something to see.
pub(crate) trait Overseer: Send + Sync {
    /// There may be something to see.
    fn look(self: Arc<Self>);
}

/// Who looks at one executor.
pub(crate) struct Alarms {
    /// Replaced as a whole, so that to tell them costs no copy.
    overseers: Mutex<Arc<[Weak<dyn Overseer>]>>,
    /// There was one, once.
    any: Flag,
}

impl Alarms {
    pub(super) fn new() -> Self {
        Self { overseers: Mutex::new(Arc::new([])), any: Flag::new(false) }
    }

    /// From now on `overseer` is told, too.
    pub(crate) fn add(&self, overseer: Weak<dyn Overseer>) {
        let mut overseers = sync::lock(&self.overseers);
        if !overseers.iter().any(|other| Weak::ptr_eq(other, &overseer)) {
            let others = overseers.iter().filter(|other| other.strong_count() > 0).cloned();
            *overseers = others.chain([overseer]).collect();
        }
        // Who adds himself looks at the executor after that.
        self.any.set(true);
    }

    /// Whether there is anybody to tell.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.is_set()
    }

    /// Tells them all.
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
