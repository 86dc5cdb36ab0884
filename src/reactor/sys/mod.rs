//! The seam to the operating system: one of two ways to wait.
//!
//! [`epoll`] needs one system call per wait and registers a source once, edge-triggered. [`portable`] goes through
//! `polling`'s own interface, one-shot, and works wherever `polling` does. Which one is used is decided when a
//! reactor is made: epoll where the platform has it and its self-check passes, unless the caller asks otherwise.
//! In the scenarios of the whole pool there is one way only: `fake.rs` in the place of epoll; and under miri, which has a
//! part of epoll, `epoll_miri.rs`.

use std::fmt::Debug;
use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::readiness::Happened;
use super::{Direction, Key};
use crate::sync::Instant;

#[cfg(all(paceline_epoll, not(any(paceline_shuttle, miri))))]
mod epoll;
mod portable;

/// Where the platform has none.
#[cfg(not(any(paceline_epoll, paceline_shuttle, miri)))]
mod epoll {
    pub(super) fn new_checked() -> std::io::Result<Option<Box<dyn super::Way>>> {
        Ok(None)
    }
}

#[cfg(paceline_shuttle)]
#[path = "fake.rs"]
mod epoll;

#[cfg(miri)]
#[path = "epoll_miri.rs"]
mod epoll;

#[cfg(all(test, paceline_shuttle))]
pub(crate) use epoll::Pipe;

/// What can be watched.
#[cfg_attr(windows, path = "raw_windows.rs")]
#[cfg_attr(paceline_kqueue, path = "raw_kqueue.rs")]
#[cfg_attr(all(unix, not(paceline_kqueue)), path = "raw_fd.rs")]
pub(crate) mod raw;
use raw::RawSource;

/// Events one wait can return. Enough to spread the cost of the call over many, few enough to look again soon.
pub(super) const BATCH: usize = 128;

/// The key of an event that says "the announced deadline has passed".
pub(super) const CLOCK: u64 = u64::MAX - 2;

/// Keys from here on are not of sources; the last one is `polling`'s own.
pub(super) const RESERVED: u64 = CLOCK;

/// How long a wait may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not at all.
    None,
    /// Until an event, an interrupt, or the deadline announced by [`Way::announce`].
    Forever,
}

/// What came of a wait, and what is kept from one to the next.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) list: Vec<(u64, Happened)>,
    /// When a wait ends, where that is not left to the system.
    pub(super) deadline: Option<Instant>,
    /// What `polling` writes to, once it was asked.
    raw: Option<polling::Events>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { list: Vec::with_capacity(BATCH), deadline: None, raw: None }
    }

    /// How long a wait may take whose end is not left to the system; `None` is for ever.
    fn limit(&self, patience: Patience) -> Option<Duration> {
        match patience {
            Patience::None => Some(Duration::ZERO),
            Patience::Forever => {
                self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
            }
        }
    }

    /// After such a wait: says that the deadline has passed, if so.
    fn note_deadline(&mut self) {
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.list.push((CLOCK, Happened::default()));
        }
    }
}

/// Reads in which directions a source is awaited.
pub(super) type Wants<'a> = &'a dyn Fn() -> [bool; 2];

/// A way to wait.
pub(super) trait Way: Debug + Send + Sync {
    /// What is waited on, where that is a descriptor.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// # Safety
    ///
    /// `raw` stays open until it is deleted.
    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()>;

    fn delete(&self, raw: RawSource, key: Key) -> io::Result<()>;

    /// Has the source report what it is ready for, although it may have said so before: epoll in the direction of the one
    /// that `asks`, the portable way, which an event disarms, in all in which it is awaited.
    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, wants: Wants<'_>) -> io::Result<()>;

    /// Sets the deadline of the waits that follow, which is later than `now`.
    fn announce(&self, deadline: Option<Instant>, now: Instant, events: &mut Events) -> io::Result<()>;

    fn wait(&self, events: &mut Events, patience: Patience) -> io::Result<()>;

    /// Ends the wait in progress, or the next one.
    fn interrupt(&self) -> io::Result<()>;
}

/// The way that is taken.
#[derive(Debug)]
pub(super) struct Sys {
    pub(super) way: Box<dyn Way>,
    /// Sources report each edge by themselves, and a look that finds nothing is cheap enough to be made before each sleep.
    /// Else an event disarms its source, and a look costs what a sleep does.
    pub(super) is_epoll: bool,
}

impl Sys {
    /// The best way there is, or the portable one.
    pub(super) fn new(portable: bool) -> io::Result<Self> {
        let epoll = if portable && !cfg!(paceline_shuttle) { None } else { epoll::new_checked()? };
        Ok(match epoll {
            Some(way) => Self { way, is_epoll: true },
            None => Self { way: Box::new(portable::Portable::new()?), is_epoll: false },
        })
    }
}
