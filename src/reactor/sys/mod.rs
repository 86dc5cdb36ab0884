//! The seam to the operating system: one of two ways to wait.
//!
//! [`epoll`] needs one system call per wait and registers a source once, edge-triggered. [`portable`] goes through
//! `polling`'s own interface, one-shot, and works wherever `polling` does. Which one is used is decided when a
//! reactor is made: epoll where the platform has it and its self-check passes, unless the caller asks otherwise.
//! In the scenarios of the whole pool there is one way only: `fake.rs` in the place of epoll; and under miri, which has a
//! part of epoll, `epoll_miri.rs`.

use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use super::readiness::{Happened, Until};
use super::{Direction, Key};
use crate::sync::Instant;

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(polling_test_poll_backend, paceline_shuttle, miri))
))]
mod epoll;
mod portable;

#[cfg(not(any(
    all(any(target_os = "linux", target_os = "android"), not(polling_test_poll_backend)),
    paceline_shuttle,
    miri
)))]
#[path = "no_epoll.rs"]
mod epoll;

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
    /// Until an event, an interrupt, or the deadline announced by [`Sys::announce`].
    Forever,
}

/// A way to wait.
#[derive(Debug)]
#[cfg_attr(paceline_shuttle, allow(clippy::large_enum_variant))]
pub(super) enum Sys {
    Epoll(epoll::Epoll),
    Portable(portable::Portable),
}

/// The events of one wait.
#[derive(Debug)]
pub(super) enum Events {
    Epoll(epoll::Events),
    Portable(portable::Events),
}

impl Sys {
    /// The best way there is, or the portable one.
    pub(super) fn new(portable: bool) -> io::Result<Self> {
        let epoll = if portable && !cfg!(paceline_shuttle) { None } else { epoll::Epoll::new_checked()? };
        match epoll {
            Some(epoll) => Ok(Sys::Epoll(epoll)),
            None => Ok(Sys::Portable(portable::Portable::new()?)),
        }
    }

    pub(super) fn events(&self) -> Events {
        match self {
            Sys::Epoll(epoll) => Events::Epoll(epoll.events()),
            Sys::Portable(_) => Events::Portable(portable::Events::new()),
        }
    }

    /// Whether a look that finds nothing is cheap enough to be made before each sleep.
    pub(super) fn looks_are_cheap(&self) -> bool {
        matches!(self, Sys::Epoll(_))
    }

    /// What is waited on, where that is a descriptor.
    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Sys::Epoll(epoll) => Some(epoll.descriptor()),
            Sys::Portable(portable) => portable.descriptor(),
        }
    }

    /// # Safety
    ///
    /// `raw` stays open until it is deleted.
    pub(super) unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        match self {
            // SAFETY: as the caller promises.
            Sys::Epoll(epoll) => unsafe { epoll.add(raw, key) },
            // SAFETY: as the caller promises.
            Sys::Portable(portable) => unsafe { portable.add(raw, key) },
        }
    }

    pub(super) fn delete(&self, raw: RawSource, key: Key) -> io::Result<()> {
        match self {
            Sys::Epoll(epoll) => epoll.delete(raw),
            Sys::Portable(portable) => portable.delete(raw, key),
        }
    }

    /// Makes sure that the next event in this direction is reported to somebody who waits `until`. `wants` reads what is
    /// awaited in each direction.
    #[inline]
    pub(super) fn rearm(
        &self,
        raw: RawSource,
        key: Key,
        direction: Direction,
        until: Until,
        wants: impl Fn() -> [bool; 2],
    ) -> io::Result<()> {
        match self {
            // An edge reports itself; only who does not trust the cached readiness needs another look.
            Sys::Epoll(_) if until == Until::Ready => Ok(()),
            Sys::Epoll(epoll) => epoll.rearm(raw, key, direction),
            Sys::Portable(portable) => portable.rearm(key, wants),
        }
    }

    /// After an event was delivered: what else is awaited must be armed again, where events disarm.
    #[inline]
    pub(super) fn rearm_rest(&self, key: Key, wants: impl Fn() -> [bool; 2]) {
        if let Sys::Portable(portable) = self {
            if wants().contains(&true) {
                // A source that went away meanwhile is no news to anybody.
                let _ = portable.rearm(key, wants);
            }
        }
    }

    /// The announced deadline has passed, or may have: the next announcement counts, whatever it is.
    pub(super) fn forget_deadline(&self, events: &mut Events) {
        match events {
            Events::Epoll(events) => events.deadline = None,
            Events::Portable(events) => events.deadline = None,
        }
    }

    /// Sets the deadline of the waits that follow; false if it was seen to have passed, and none is set. Cheap when it did
    /// not change.
    #[inline]
    pub(super) fn announce(&self, deadline: Option<Instant>, events: &mut Events) -> io::Result<bool> {
        match (self, events) {
            (Sys::Epoll(epoll), Events::Epoll(events)) => epoll.announce(deadline, events),
            (Sys::Portable(_), Events::Portable(events)) => {
                events.deadline = deadline;
                Ok(true)
            }
            _ => unreachable!("events are made by the `Sys` they are used with"),
        }
    }

    #[inline]
    pub(super) fn wait(&self, events: &mut Events, patience: Patience) -> io::Result<()> {
        match (self, events) {
            (Sys::Epoll(epoll), Events::Epoll(events)) => epoll.wait(events, patience),
            (Sys::Portable(portable), Events::Portable(events)) => portable.wait(events, patience),
            _ => unreachable!("events are made by the `Sys` they are used with"),
        }
    }

    /// Ends the wait in progress, or the next one.
    pub(super) fn interrupt(&self) -> io::Result<()> {
        match self {
            Sys::Epoll(epoll) => epoll.interrupt(),
            Sys::Portable(portable) => portable.interrupt(),
        }
    }
}

impl Events {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Events::Epoll(events) => events.len(),
            Events::Portable(events) => events.len(),
        }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> (u64, Happened) {
        match self {
            Events::Epoll(events) => events.get(at),
            Events::Portable(events) => events.get(at),
        }
    }
}
