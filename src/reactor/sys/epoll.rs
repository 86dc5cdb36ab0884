//! Waiting with epoll: one system call per wait, no system call to re-arm, none to set an unchanged deadline.
//!
//! The descriptor is that of a `polling::Poller`, so that whoever asks for the reactor's descriptor gets one that
//! the crates around `polling` understand. Sources are added to it directly: edge-triggered, for both directions,
//! with `EPOLLRDHUP`, which `polling` does not ask for and without which a short read could hide the end of a
//! stream. The deadline is a timerfd, touched only when the earliest deadline changes;
//! interrupts are an eventfd, edge-triggered, so that nobody ever reads it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use polling::Poller;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::raw::{self, RawSource};
use super::{BATCH, CLOCK, Patience};
use crate::reactor::readiness::Happened;
use crate::reactor::{Direction, Key};
use crate::sync::Instant;

/// The key of an event that says only "look again".
const INTERRUPT: u64 = u64::MAX - 1;

#[derive(Debug)]
pub(in crate::reactor) struct Epoll {
    poller: Poller,
    bell: OwnedFd,
    clock: OwnedFd,
}

pub(in crate::reactor) struct Events {
    list: Vec<epoll::Event>,
    /// What the timerfd is set to.
    pub(super) deadline: Option<Instant>,
}

// SAFETY: an event is flags and a number; the pointer that keeps it from being `Send` is the same 64 bits by another
// name, and nobody uses that name.
unsafe impl Send for Events {}

impl Epoll {
    /// A poller that passed its self-check, or `None` where the check fails: then something between us and the
    /// kernel does not behave as epoll does.
    pub(super) fn new_checked() -> io::Result<Option<Self>> {
        let epoll = Self::new()?;
        let mut events = Events::new();
        epoll.interrupt()?;
        epoll.wait(&mut events, Patience::None)?;
        let rings = (0..events.len()).any(|at| events.get(at).0 == INTERRUPT);
        // Nobody read the bell: an edge that was reported must not be reported again.
        epoll.wait(&mut events, Patience::None)?;
        Ok((rings && events.len() == 0).then_some(epoll))
    }

    fn new() -> io::Result<Self> {
        let poller = Poller::new()?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let clock =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&poller, &bell, epoll::EventData::new_u64(INTERRUPT), edge)?;
        epoll::add(&poller, &clock, epoll::EventData::new_u64(CLOCK), edge)?;
        Ok(Self { poller, bell, clock })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// # Safety
    ///
    /// `raw` is open.
    pub(super) unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        raw::check(raw)?;
        // SAFETY: `raw` is open, as the caller promises.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        Ok(epoll::add(&self.poller, fd, epoll::EventData::new_u64(key.to_u64()), Self::interest())?)
    }

    /// Has the source report in this direction if it is ready now. One that is not reports by itself once it is: to ask
    /// costs no more than to re-arm, and spares the leader an event for what the source is ready for besides.
    pub(super) fn rearm(&self, raw: RawSource, key: Key, direction: Direction) -> io::Result<()> {
        // SAFETY: `raw` stays open until it is deleted, as the caller of `add` promised.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        let asked = match direction {
            Direction::Read => PollFlags::IN | PollFlags::PRI | PollFlags::RDHUP,
            Direction::Write => PollFlags::OUT,
        };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::from_borrowed_fd(fd, asked)], Some(&at_once)) == Ok(0) {
            return Ok(());
        }
        Ok(epoll::modify(&self.poller, fd, epoll::EventData::new_u64(key.to_u64()), Self::interest())?)
    }

    pub(super) fn delete(&self, raw: RawSource) -> io::Result<()> {
        // SAFETY: as above.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        Ok(epoll::delete(&self.poller, fd)?)
    }

    fn interest() -> epoll::EventFlags {
        use epoll::EventFlags as Flags;
        Flags::IN | Flags::PRI | Flags::RDHUP | Flags::OUT | Flags::ET
    }

    /// See [`Sys::announce`](super::Sys::announce).
    #[inline]
    pub(super) fn announce(&self, deadline: Option<Instant>, events: &mut Events) -> io::Result<bool> {
        if events.deadline == deadline {
            return Ok(true);
        }
        let is_ahead = self.set_clock(deadline)?;
        events.deadline = if is_ahead { deadline } else { None };
        Ok(is_ahead)
    }

    /// False, and the clock is not set, if the deadline has passed.
    #[cold]
    fn set_clock(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return Ok(false),
            // Relative to a moment that has passed when the kernel counts from it, so it never rings early. A deadline
            // beyond the end of time never rings.
            Some(ahead) => Timespec::try_from(ahead).unwrap_or(never),
            None => never,
        };
        let timer = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.clock, TimerfdTimerFlags::empty(), &timer)?;
        Ok(true)
    }

    #[inline]
    pub(super) fn wait(&self, events: &mut Events, patience: Patience) -> io::Result<()> {
        let timeout = match patience {
            Patience::None => Some(&Timespec { tv_sec: 0, tv_nsec: 0 }),
            Patience::Forever => None,
        };
        events.list.clear();
        match epoll::wait(&self.poller, spare_capacity(&mut events.list), timeout) {
            Err(rustix::io::Errno::INTR) => Ok(()), // A signal: the caller looks again by itself (P9).
            result => Ok(result.map(|_| ())?),
        }
    }

    pub(super) fn events(&self) -> Events {
        Events::new()
    }

    pub(super) fn interrupt(&self) -> io::Result<()> {
        match rustix::io::write(&self.bell, &1u64.to_ne_bytes()) {
            Err(rustix::io::Errno::AGAIN) => self.reset_bell(),
            result => Ok(result.map(|_| ())?),
        }
    }

    /// After 2^64 - 2 rings the counter is full: empty it and ring again.
    #[cold]
    fn reset_bell(&self) -> io::Result<()> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        rustix::io::write(&self.bell, &1u64.to_ne_bytes())?;
        Ok(())
    }
}

impl Events {
    fn new() -> Self {
        Self { list: Vec::with_capacity(BATCH), deadline: None }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> (u64, Happened) {
        use epoll::EventFlags as Flags;
        let event = self.list[at];
        let (flags, key) = (event.flags, event.data.u64());
        let broken = flags.intersects(Flags::HUP | Flags::ERR);
        let ended = flags.contains(Flags::RDHUP);
        let urgent = flags.contains(Flags::PRI);
        let happened = Happened {
            read: broken || ended || urgent || flags.contains(Flags::IN),
            write: broken || flags.contains(Flags::OUT),
            read_cut: broken || ended || urgent,
            write_cut: broken,
        };
        (key, happened)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("len", &self.len()).field("deadline", &self.deadline).finish()
    }
}
