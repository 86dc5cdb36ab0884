//! Waiting with epoll: one system call per wait, none to re-arm, none for an unchanged deadline.
//!
//! The descriptor is that of a `polling::Poller`, so that a caller that asks for the reactor's descriptor
//! gets one that the crates around `polling` understand. Sources are added to it directly: edge-triggered,
//! for both directions, with `EPOLLRDHUP`, which `polling` does not ask for and without which a short read
//! could hide the end of a stream. The deadline is a timerfd, set only when the earliest deadline changes.
//! Interrupts are an eventfd, edge-triggered, so that it never has to be read.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use polling::Poller;
use rustix::event::epoll::{EventData, EventFlags as Flags};
use rustix::event::{EventfdFlags, PollFlags, Timespec, epoll, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::raw::{self, RawSource};
use super::{BATCH, CLOCK, EventWait, Events, Wants, Way, ends, now};
use crate::reactor::marks::Marks;
use crate::reactor::readiness::Happened;
use crate::reactor::{Direction, Key};
use crate::sync::Instant;

/// The key of an event that means only "look again".
const INTERRUPT: u64 = u64::MAX - 1;

/// The events for which a source is added.
const INTEREST: Flags = Flags::IN.union(Flags::PRI).union(Flags::RDHUP).union(Flags::OUT).union(Flags::ET);

#[derive(Debug)]
struct Epoll {
    poller: Poller,
    /// The eventfd of interrupts.
    bell: OwnedFd,
    /// The timerfd of the deadline.
    clock: OwnedFd,
}

/// Returns a way that passed its self-check, or `None` if the check fails: then something between this
/// process and the kernel does not behave as epoll does.
pub(super) fn new_checked() -> io::Result<Option<Box<dyn Way>>> {
    let needs = |error: io::Error| {
        io::Error::new(error.kind(), format!("epoll, eventfd and timerfd are needed: {error}"))
    };
    let epoll = Epoll::new().map_err(needs)?;
    let mut events = Events::new();
    epoll.announce(None, Instant::now(), &mut events)?;
    epoll.interrupt()?;
    epoll.wait(&mut events, EventWait::None)?;
    let rings = events.list.iter().any(|(key, _)| *key == INTERRUPT);
    // The bell was not read: an edge that was reported must not be reported again.
    epoll.wait(&mut events, EventWait::None)?;
    Ok(if rings && events.list.is_empty() { Some(Box::new(epoll)) } else { None })
}

impl Epoll {
    /// Makes the poller, the bell and the clock, and adds the latter two to the poller.
    fn new() -> io::Result<Self> {
        let poller = Poller::new()?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let clock =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let edge = Flags::IN | Flags::ET;
        epoll::add(&poller, &bell, EventData::new_u64(INTERRUPT), edge)?;
        epoll::add(&poller, &clock, EventData::new_u64(CLOCK), edge)?;
        Ok(Self { poller, bell, clock })
    }
}

impl Way for Epoll {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }

    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        raw::check(raw)?;
        let fd = raw::borrow(raw);
        Ok(epoll::add(&self.poller, fd, EventData::new_u64(key.0), INTEREST)?)
    }

    /// A source that is not ready reports by itself once it is. Asking costs no more than re-arming, and
    /// spares the leader an event for the other direction.
    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, _: Wants<'_>) -> io::Result<()> {
        let Some((raw, direction)) = asks else { return Ok(()) };
        if !self.is_ready(raw, direction) {
            return Ok(());
        }
        Ok(epoll::modify(&self.poller, raw::borrow(raw), EventData::new_u64(key.0), INTEREST)?)
    }

    fn ends(&self, raw: RawSource) -> Marks {
        // Like epoll, poll(2) reports a hang-up without being asked for it.
        let said = now::ask(raw::borrow(raw), PollFlags::RDHUP).unwrap_or(PollFlags::HUP);
        ends(said.contains(PollFlags::HUP), said.contains(PollFlags::RDHUP))
    }

    fn delete(&self, raw: RawSource, _: Key) -> io::Result<()> {
        Ok(epoll::delete(&self.poller, raw::borrow(raw))?)
    }

    /// Sets the timerfd, whose event then ends the wait by itself.
    #[cold]
    fn announce(&self, deadline: Option<Instant>, now: Instant, _: &mut Events) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Relative to a moment that has passed when the kernel counts from it, so the timer never fires
        // early. A deadline beyond the end of time never fires.
        let ahead = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let value = ahead.and_then(|ahead| Timespec::try_from(ahead).ok()).unwrap_or(never);
        let timer = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        let timeout = match wait {
            EventWait::None => Some(&Timespec { tv_sec: 0, tv_nsec: 0 }),
            EventWait::Forever => None,
        };
        let mut buffer = [const { MaybeUninit::uninit() }; BATCH];
        events.list.clear();
        match epoll::wait(&self.poller, &mut buffer, timeout) {
            Err(rustix::io::Errno::INTR) => {} // A signal: the caller looks again by itself.
            result => events.list.extend(result?.0.iter().map(report)),
        }
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        // Nothing reads the bell, because epoll reports its edges. Its counter is full after 2^64 - 2 rings.
        rustix::io::write(&self.bell, &1u64.to_ne_bytes())?;
        Ok(())
    }
}

/// Converts an event of epoll: to its key, and to what happened. An error or a hang-up makes both directions
/// ready, an end of the peer's data or an urgent mark the reading one.
#[inline]
fn report(event: &epoll::Event) -> (u64, Happened) {
    let flags = event.flags;
    let broken = flags.intersects(Flags::HUP | Flags::ERR);
    let cut = broken || flags.intersects(Flags::RDHUP | Flags::PRI);
    let marks = if cut { marks(flags) } else { Marks::NONE };
    let happened = Happened {
        ready: [cut || flags.contains(Flags::IN), broken || flags.contains(Flags::OUT)],
        cut: [cut, broken],
        marks,
    };
    (event.data.u64(), happened)
}

/// Returns the marks that the flags of an event report: `HUP` closes both directions, `RDHUP` closes
/// reading, `ERR` is an error and `PRI` is urgent data. `IN` and `OUT` are no marks.
#[cold]
fn marks(flags: Flags) -> Marks {
    ends(flags.contains(Flags::HUP), flags.contains(Flags::RDHUP))
        .and(Marks::ERROR.if_said(flags.contains(Flags::ERR)))
        .and(Marks::PRIORITY.if_said(flags.contains(Flags::PRI)))
}
