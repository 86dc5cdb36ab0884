//! [`Id`]: tells tasks apart.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context;

/// Tells tasks apart, of all runtimes.
#[derive(Clone, Copy, Debug, Hash, Eq, PartialEq, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        loop {
            // ORDER: Relaxed: it is a number, and nothing follows from it.
            if let Some(id) = NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)) {
                return Self(id);
            }
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The task that runs here.
#[track_caller]
pub fn id() -> Id {
    context::task_id().expect("Can't get a task id when not inside a task")
}

pub fn try_id() -> Option<Id> {
    context::task_id()
}
