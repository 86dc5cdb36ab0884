//! The seam to the operating system: one of two ways to wait.
//!
//! [`epoll`] needs one system call per wait and registers a source once, edge-triggered. [`portable`] goes
//! through `polling`'s own interface, one-shot, and works wherever `polling` does.
//!
//! The way is chosen when a reactor is made: epoll where the platform has it and its self-check passes,
//! unless the caller asks otherwise. If the system refuses that, there is no reactor. In the scenarios of the
//! whole pool there is one way only: `fake.rs` in the place of epoll. Under miri, which has a part of epoll,
//! that is `epoll_miri.rs`.

use std::fmt::Debug;
use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::marks::Marks;
use super::readiness::Happened;
use super::{Direction, Key};
use crate::sync::Instant;

#[cfg(all(paceline_epoll, not(any(paceline_shuttle, miri))))]
mod epoll;
mod portable;

/// For platforms without epoll.
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

#[cfg(unix)]
mod now;

/// The sources that a poller can watch.
#[cfg_attr(windows, path = "raw_windows.rs")]
#[cfg_attr(paceline_kqueue, path = "raw_kqueue.rs")]
#[cfg_attr(all(unix, not(paceline_kqueue)), path = "raw_fd.rs")]
pub(crate) mod raw;
use raw::RawSource;

/// Number of events that one wait can return: enough to spread the cost of the call over many, few enough to
/// look again soon.
pub(crate) const BATCH: usize = 128;

/// The key of an event that means "the announced deadline has passed".
pub(super) const CLOCK: u64 = u64::MAX - 2;

/// The first key that belongs to no source. The last key is `polling`'s own.
pub(super) const RESERVED: u64 = CLOCK;

/// How long a wait may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventWait {
    /// Not at all.
    None,
    /// Until an event, an interrupt, or the deadline announced by [`Way::announce`].
    Forever,
}

/// The result of a wait, and the state that is kept from one wait to the next.
#[derive(Debug)]
pub(crate) struct Events {
    /// The events of the last wait, by key.
    pub(crate) list: Vec<(u64, Happened)>,
    /// The deadline, if ending a wait at it is not left to the system.
    pub(super) deadline: Option<Instant>,
    /// The buffer of `polling`, once it was used.
    raw: Option<polling::Events>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { list: Vec::with_capacity(BATCH), deadline: None, raw: None }
    }

    /// Returns the timeout of a wait, for a way whose waits the system does not end at the announced
    /// deadline. `None` is for ever.
    fn limit(&self, wait: EventWait) -> Option<Duration> {
        match wait {
            EventWait::None => Some(Duration::ZERO),
            EventWait::Forever => {
                self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
            }
        }
    }

    /// Adds an event of the clock if the deadline has passed. Such a way calls this after each wait.
    fn add_clock_event(&mut self) {
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.list.push((CLOCK, Happened::default()));
        }
    }
}

/// Returns the directions in which a source is awaited.
pub(crate) type Wants<'a> = &'a dyn Fn() -> [bool; 2];

/// A way to wait.
pub(crate) trait Way: Debug + Send + Sync {
    /// Returns the descriptor that is waited on, if there is one.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Adds a source. epoll reports it from now on; the other ways report it only after
    /// [`rearm`](Self::rearm). Returns an error for a descriptor that is closed, that cannot be polled, or
    /// that was added before.
    ///
    /// # Safety
    ///
    /// `raw` stays open until it is deleted.
    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()>;

    /// Removes a source. Events of it that were fetched before stay in their batch.
    fn delete(&self, raw: RawSource, key: Key) -> io::Result<()>;

    /// Makes the source report its readiness, even if it has reported before. epoll does so in the direction
    /// of `asks`, and does nothing without `asks`. The other ways, in which an event disarms its source, arm
    /// it for all awaited directions; a source that is not there any more is no error for them.
    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, wants: Wants<'_>) -> io::Result<()>;

    /// Asks the system whether a source is ready in this direction right now. Returns true if the system
    /// cannot be asked.
    fn is_ready(&self, raw: RawSource, direction: Direction) -> bool {
        raw::is_ready(raw, direction)
    }

    /// Asks the system which of the [ends](Marks::ENDS) hold for a source right now. Returns all of them if
    /// the system cannot be asked.
    fn ends(&self, _: RawSource) -> Marks {
        Marks::ENDS
    }

    /// Sets the deadline of the waits that follow, which is later than `now`; `None` is never. When the
    /// deadline has passed, a wait reports an event of [`CLOCK`].
    fn announce(&self, deadline: Option<Instant>, now: Instant, events: &mut Events) -> io::Result<()>;

    /// Replaces the list in `events` by the events that there are. If there are none, waits for one as long
    /// as `wait` allows. A signal ends the wait, too: then the list may be empty.
    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()>;

    /// Ends the wait in progress, or the next one.
    fn interrupt(&self) -> io::Result<()>;

    /// Returns when the next event comes, if that is known before: in a simulation.
    fn next_event(&self, _now: Instant) -> Option<Instant> {
        None
    }
}

/// The choice of a way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum WayChoice {
    /// The best way there is.
    #[default]
    Best,
    /// The best way but epoll.
    Portable,
    /// A way that does not wait for the system, such as the network of a simulation.
    #[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "only a simulation has one"))]
    Other(fn() -> Box<dyn Way>),
}

/// Makes the chosen way. Returns also whether sources report each edge by themselves there, as with epoll,
/// and asking it in vain is cheap enough to be done before each sleep. Otherwise an event disarms its
/// source, and asking costs as much as a sleep.
pub(super) fn choose(choice: WayChoice) -> io::Result<(Box<dyn Way>, bool)> {
    if let WayChoice::Other(make) = choice {
        return Ok((make(), true));
    }
    if matches!(choice, WayChoice::Best) || cfg!(paceline_shuttle) {
        if let Some(way) = epoll::new_checked()? {
            return Ok((way, true));
        }
    }
    Ok((Box::new(portable::Portable::new_checked()?), false))
}

/// Returns the ends that a hang-up, or the end of the peer's data, means. An error is no end, although it is
/// the only sign of a pipe without a reader: a datagram socket that reports an error still sends.
#[cfg(any(paceline_epoll, feature = "sim"))]
pub(crate) fn ends(hang_up: bool, peer_sends_no_more: bool) -> Marks {
    let read = Marks::READ_CLOSED.if_said(hang_up || peer_sends_no_more);
    read.and(Marks::WRITE_CLOSED.if_said(hang_up))
}
