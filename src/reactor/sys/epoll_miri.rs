//! Stands in for [`epoll`](super::epoll) under miri, which has no timerfd, no `poll`, no `EPOLLPRI`, and no epoll but an
//! edge-triggered one, so that `polling` has no way to wait there. The deadline is the wait's timeout; all else is as in
//! `epoll.rs`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use super::raw::{self, RawSource};
use super::{BATCH, CLOCK, Patience};
use crate::reactor::readiness::Happened;
use crate::reactor::{Direction, Key};
use crate::sync::Instant;

/// The key of an event that says only "look again".
const INTERRUPT: u64 = u64::MAX - 1;

#[derive(Debug)]
pub(in crate::reactor) struct Epoll {
    poller: OwnedFd,
    bell: OwnedFd,
}

#[derive(Debug)]
pub(in crate::reactor) struct Events {
    list: Vec<(u64, Happened)>,
    /// When a wait ends with an event of the clock's.
    pub(super) deadline: Option<Instant>,
}

impl Epoll {
    pub(super) fn new_checked() -> io::Result<Option<Self>> {
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&poller, &bell, epoll::EventData::new_u64(INTERRUPT), edge)?;
        Ok(Some(Self { poller, bell }))
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

    pub(super) fn rearm(&self, raw: RawSource, key: Key, _: Direction) -> io::Result<()> {
        // SAFETY: `raw` stays open until it is deleted, as the caller of `add` promised.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        Ok(epoll::modify(&self.poller, fd, epoll::EventData::new_u64(key.to_u64()), Self::interest())?)
    }

    pub(super) fn delete(&self, raw: RawSource) -> io::Result<()> {
        // SAFETY: as above.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        Ok(epoll::delete(&self.poller, fd)?)
    }

    fn interest() -> epoll::EventFlags {
        use epoll::EventFlags as Flags;
        Flags::IN | Flags::RDHUP | Flags::OUT | Flags::ET
    }

    /// See [`Sys::announce`](super::Sys::announce).
    pub(super) fn announce(&self, deadline: Option<Instant>, events: &mut Events) -> io::Result<bool> {
        let is_ahead = deadline.is_none_or(|deadline| deadline > Instant::now());
        events.deadline = if is_ahead { deadline } else { None };
        Ok(is_ahead)
    }

    pub(super) fn wait(&self, events: &mut Events, patience: Patience) -> io::Result<()> {
        let limit = match (patience, events.deadline) {
            (Patience::None, _) => Some(Duration::ZERO),
            (Patience::Forever, None) => None,
            (Patience::Forever, Some(deadline)) => Some(deadline.saturating_duration_since(Instant::now())),
        };
        // A wait that ends early is one that found nothing: the caller looks again.
        let limit =
            limit.map(|limit| Timespec::try_from(limit.min(Duration::from_secs(3600))).expect("an hour"));
        let mut list = Vec::with_capacity(BATCH);
        epoll::wait(&self.poller, spare_capacity(&mut list), limit.as_ref())?;
        events.list = list.iter().map(happened).collect();
        if events.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            events.list.push((CLOCK, Happened::default()));
        }
        Ok(())
    }

    pub(super) fn events(&self) -> Events {
        Events { list: Vec::new(), deadline: None }
    }

    pub(super) fn interrupt(&self) -> io::Result<()> {
        Ok(rustix::io::write(&self.bell, &1u64.to_ne_bytes()).map(|_| ())?)
    }
}

fn happened(event: &epoll::Event) -> (u64, Happened) {
    use epoll::EventFlags as Flags;
    let (flags, key) = (event.flags, event.data.u64());
    let broken = flags.intersects(Flags::HUP | Flags::ERR);
    let ended = broken || flags.contains(Flags::RDHUP);
    let read = ended || flags.contains(Flags::IN);
    let write = broken || flags.contains(Flags::OUT);
    (key, Happened { read, write, read_cut: ended, write_cut: broken })
}

impl Events {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, at: usize) -> (u64, Happened) {
        self.list[at]
    }
}
