//! Waiting with epoll: one system call per wait, no system call to re-arm, none to set an unchanged deadline.
//!
//! The descriptor is that of a `polling::Poller`, so that whoever asks for the reactor's descriptor gets one that
//! the crates around `polling` understand. Sources are added to it directly: edge-triggered, for both directions,
//! with `EPOLLRDHUP`, which `polling` does not ask for and without which a short read could hide the end of a
//! stream. The deadline is a timerfd, touched only when the earliest deadline changes;
//! interrupts are an eventfd, edge-triggered, so that nobody ever reads it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use polling::Poller;
use rustix::event::epoll::{EventData, EventFlags as Flags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::raw::{self, RawSource};
use super::{BATCH, CLOCK, Events, Patience, Wants, Way};
use crate::reactor::marks::Marks;
use crate::reactor::readiness::Happened;
use crate::reactor::{Direction, Key};
use crate::sync::Instant;

/// The key of an event that says only "look again".
const INTERRUPT: u64 = u64::MAX - 1;

/// What a source is added for.
const INTEREST: Flags = Flags::IN.union(Flags::PRI).union(Flags::RDHUP).union(Flags::OUT).union(Flags::ET);

#[derive(Debug)]
struct Epoll {
    poller: Poller,
    bell: OwnedFd,
    clock: OwnedFd,
}

/// A poller that passed its self-check, or `None` where the check fails: then something between us and the
/// kernel does not behave as epoll does.
pub(super) fn new_checked() -> io::Result<Option<Box<dyn Way>>> {
    let epoll = Epoll::new()?;
    let mut events = Events::new();
    epoll.interrupt()?;
    epoll.wait(&mut events, Patience::None)?;
    let rings = events.list.iter().any(|(key, _)| *key == INTERRUPT);
    // Nobody read the bell: an edge that was reported must not be reported again.
    epoll.wait(&mut events, Patience::None)?;
    Ok(if rings && events.list.is_empty() { Some(Box::new(epoll)) } else { None })
}

impl Epoll {
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

    /// After 2^64 - 2 rings the counter is full: empty it and ring again.
    #[cold]
    fn reset_bell(&self) -> io::Result<()> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        rustix::io::write(&self.bell, &1u64.to_ne_bytes())?;
        Ok(())
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

    /// A source that is not ready reports by itself once it is: to ask costs no more than to re-arm, and spares the leader an
    /// event for what the source is ready for besides.
    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, _: Wants<'_>) -> io::Result<()> {
        let Some((raw, direction)) = asks else { return Ok(()) };
        let fd = raw::borrow(raw);
        let asked = match direction {
            Direction::Read => PollFlags::IN | PollFlags::PRI | PollFlags::RDHUP,
            Direction::Write => PollFlags::OUT,
        };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::from_borrowed_fd(fd, asked)], Some(&at_once)) == Ok(0) {
            return Ok(());
        }
        Ok(epoll::modify(&self.poller, fd, EventData::new_u64(key.0), INTEREST)?)
    }

    fn delete(&self, raw: RawSource, _: Key) -> io::Result<()> {
        Ok(epoll::delete(&self.poller, raw::borrow(raw))?)
    }

    #[cold]
    fn announce(&self, deadline: Option<Instant>, now: Instant, _: &mut Events) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Relative to a moment that has passed when the kernel counts from it, so it never rings early. A deadline
        // beyond the end of time never rings.
        let ahead = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let value = ahead.and_then(|ahead| Timespec::try_from(ahead).ok()).unwrap_or(never);
        let timer = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    fn wait(&self, events: &mut Events, patience: Patience) -> io::Result<()> {
        let timeout = match patience {
            Patience::None => Some(&Timespec { tv_sec: 0, tv_nsec: 0 }),
            Patience::Forever => None,
        };
        let mut buffer = [const { MaybeUninit::uninit() }; BATCH];
        events.list.clear();
        match epoll::wait(&self.poller, &mut buffer, timeout) {
            Err(rustix::io::Errno::INTR) => {} // A signal: the caller looks again by itself (P9).
            result => events.list.extend(result?.0.iter().map(report)),
        }
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        match rustix::io::write(&self.bell, &1u64.to_ne_bytes()) {
            Err(rustix::io::Errno::AGAIN) => self.reset_bell(),
            result => Ok(result.map(|_| ())?),
        }
    }
}

/// An event of epoll's as one of ours.
#[inline]
fn report(event: &epoll::Event) -> (u64, Happened) {
    let flags = event.flags;
    let broken = flags.intersects(Flags::HUP | Flags::ERR);
    let cut = broken || flags.intersects(Flags::RDHUP | Flags::PRI);
    let marks = if cut { marks(flags) } else { Marks::NONE };
    let happened = Happened {
        read: cut || flags.contains(Flags::IN),
        write: broken || flags.contains(Flags::OUT),
        read_cut: cut,
        write_cut: broken,
        marks,
    };
    (event.data.u64(), happened)
}

#[cold]
fn marks(flags: Flags) -> Marks {
    Marks::READ_CLOSED
        .if_said(flags.intersects(Flags::HUP | Flags::RDHUP))
        .and(Marks::WRITE_CLOSED.if_said(
            flags.contains(Flags::HUP) || flags.contains(Flags::OUT | Flags::ERR) || flags == Flags::ERR,
        ))
        .and(Marks::ERROR.if_said(flags.contains(Flags::ERR)))
        .and(Marks::PRIORITY.if_said(flags.contains(Flags::PRI)))
}
