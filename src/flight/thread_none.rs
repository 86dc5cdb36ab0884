//! The functions of `thread_log.rs` without the feature `trace`: they do nothing.

use std::panic::Location;
use std::time::Duration;

use super::{FoundIn, Reason, RoleNow};

/// The number of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskNumber;

/// The number of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadNumber;

/// The recorder of a runtime.
#[derive(Debug)]
pub(crate) struct Recording;

impl Recording {
    #[inline]
    pub(crate) fn new() -> Self {
        Self
    }
}

/// The part of the current thread in the recording of a runtime.
#[derive(Debug)]
pub(crate) struct Membership;

#[allow(clippy::unused_self, reason = "the functions of the other file use it")]
impl Membership {
    #[inline]
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn refresh(&mut self, _: &Recording) {}
}

impl TaskNumber {
    #[inline]
    pub(crate) fn next() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn get(self) -> Option<u64> {
        None
    }
}

impl ThreadNumber {
    #[inline]
    pub(crate) fn here() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn get(self) -> u64 {
        0
    }
}

/// A poll in progress.
#[derive(Debug)]
pub(crate) struct PollNote;

impl PollNote {
    #[inline]
    pub(crate) fn begin(_: TaskNumber, _: &'static Location<'static>) -> Self {
        Self
    }

    #[inline]
    pub(crate) fn end(self) {}
}

/// A time without notes.
#[derive(Debug)]
pub(crate) struct Pause;

impl Pause {
    #[inline]
    pub(crate) fn begin() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn end(self) {}
}

#[cfg(all(unix, not(miri)))]
pub(crate) fn note_fork() {}

macro_rules! do_nothing {
    ($($name:ident($($kind:ty),*);)*) => {
        $(#[inline]
        pub(crate) fn $name($(_: $kind),*) {})*
    };
}

do_nothing! {
    role(RoleNow);
    sleeps();
    events(usize);
    promotes(ThreadNumber, Reason);
    steals(u64, u32);
    finds(FoundIn);
    spawns(TaskNumber, &'static Location<'static>);
    wakes(TaskNumber);
    ends(TaskNumber);
    timer_fires();
    stalls(ThreadNumber, &'static Location<'static>, impl FnOnce() -> u64, Duration);
}
