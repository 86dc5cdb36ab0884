//! Stands in for [`epoll`](super::epoll) under miri, which has no timerfd, no `poll`, no `EPOLLPRI`, and no
//! epoll but an edge-triggered one, so that `polling` has no way to wait there. The deadline is the wait's
//! timeout; all else is as in `epoll.rs`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags as Flags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::raw::{self, RawSource};
use super::{BATCH, EventWait, Events, Wants, Way};
use crate::reactor::readiness::Happened;
use crate::reactor::{Direction, Key};
use crate::sync::Instant;

/// The key of an event that means only "look again".
const INTERRUPT: u64 = u64::MAX - 1;

/// The events for which a source is added.
const INTEREST: Flags = Flags::IN.union(Flags::RDHUP).union(Flags::OUT).union(Flags::ET);

#[derive(Debug)]
struct Epoll {
    poller: OwnedFd,
    /// The eventfd of interrupts.
    bell: OwnedFd,
}

/// Returns a way, without a check of it.
pub(super) fn new_checked() -> io::Result<Option<Box<dyn Way>>> {
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    epoll::add(&poller, &bell, EventData::new_u64(INTERRUPT), Flags::IN | Flags::ET)?;
    Ok(Some(Box::new(Epoll { poller, bell })))
}

impl Way for Epoll {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }

    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        raw::check(raw)?;
        Ok(epoll::add(&self.poller, raw::borrow(raw), EventData::new_u64(key.0), INTEREST)?)
    }

    fn is_ready(&self, _: RawSource, _: Direction) -> bool {
        true
    }

    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, _: Wants<'_>) -> io::Result<()> {
        let Some((raw, _)) = asks else { return Ok(()) };
        Ok(epoll::modify(&self.poller, raw::borrow(raw), EventData::new_u64(key.0), INTEREST)?)
    }

    fn delete(&self, raw: RawSource, _: Key) -> io::Result<()> {
        Ok(epoll::delete(&self.poller, raw::borrow(raw))?)
    }

    fn announce(&self, deadline: Option<Instant>, _: Instant, events: &mut Events) -> io::Result<()> {
        events.deadline = deadline;
        Ok(())
    }

    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        let limit = events.limit(wait);
        // A wait that ends early counts as one that found nothing: the caller looks again.
        let limit =
            limit.map(|limit| Timespec::try_from(limit.min(Duration::from_secs(3600))).expect("an hour"));
        let mut list = Vec::with_capacity(BATCH);
        epoll::wait(&self.poller, spare_capacity(&mut list), limit.as_ref())?;
        events.list = list.iter().map(report).collect();
        events.add_clock_event();
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        Ok(rustix::io::write(&self.bell, &1u64.to_ne_bytes()).map(|_| ())?)
    }
}

/// Converts an event of epoll: to its key, and to what happened, without marks.
fn report(event: &epoll::Event) -> (u64, Happened) {
    let flags = event.flags;
    let broken = flags.intersects(Flags::HUP | Flags::ERR);
    let ended = broken || flags.contains(Flags::RDHUP);
    let read = ended || flags.contains(Flags::IN);
    let write = broken || flags.contains(Flags::OUT);
    (event.data.u64(), Happened { ready: [read, write], cut: [ended, broken], ..Happened::NOTHING })
}
