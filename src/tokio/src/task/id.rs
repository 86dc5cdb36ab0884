//! [`Id`]: identifies a task.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context;

/// Identifies a task, across all runtimes.
#[derive(Clone, Copy, Debug, Hash, Eq, PartialEq, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        loop {
            // ORDER: Relaxed, because only the number's uniqueness matters.
            if let Some(id) = NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)) {
                return Self(id);
            }
        }
    }
}

impl Id {
    pub(crate) fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the id of the current task.
#[track_caller]
pub fn id() -> Id {
    context::task_id().expect("Can't get a task id when not inside a task")
}

/// Returns the id of the current task, or `None` outside of a task.
#[track_caller]
pub fn try_id() -> Option<Id> {
    context::task_id()
}
