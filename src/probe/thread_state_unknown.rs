//! The state of a thread, for systems that do not tell.

use std::time::Duration;

use super::syscall::Syscall;

/// A thread of which nothing is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadState;

impl ThreadState {
    /// Returns the state of the current thread.
    pub(crate) fn here() -> Self {
        Self
    }

    /// Returns none: the system does not tell.
    pub(crate) fn number(self) -> Option<u32> {
        None
    }

    /// Returns none: the system does not tell.
    pub(crate) fn processor_time(self) -> Option<Duration> {
        None
    }

    /// Returns none: the system does not tell, and the thread may be blocked.
    pub(crate) fn is_running(self) -> Option<bool> {
        None
    }

    /// Returns none: the system does not tell.
    pub(crate) fn syscall(self) -> Option<Syscall> {
        None
    }
}
