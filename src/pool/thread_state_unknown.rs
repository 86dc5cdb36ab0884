//! What a thread does, where nobody tells.

use std::time::Duration;

use super::syscall::Syscall;

/// A thread of which nothing is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadState;

impl ThreadState {
    /// Of the current thread.
    pub(super) fn here() -> Self {
        Self
    }

    /// Processor time that it has used so far: nobody tells.
    pub(super) fn processor_time(self) -> Option<Duration> {
        None
    }

    /// Whether it runs: nobody tells, and it may be blocked.
    pub(super) fn is_running(self) -> Option<bool> {
        None
    }

    /// The system call in which it sleeps: nobody tells.
    pub(super) fn syscall(self) -> Option<Syscall> {
        None
    }
}
