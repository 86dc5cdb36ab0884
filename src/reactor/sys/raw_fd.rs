//! What a poller of descriptors watches: a descriptor.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use polling::{Event, Poller};

/// The operating system's name for a source.
pub(crate) type RawSource = RawFd;

/// The source that a descriptor is.
pub(crate) fn of_fd(fd: BorrowedFd<'_>) -> RawSource {
    fd.as_raw_fd()
}

/// What a poller waits on, if that is a descriptor.
#[cfg(any(paceline_epoll, paceline_ports))]
pub(super) fn descriptor(poller: &Poller) -> Option<BorrowedFd<'_>> {
    Some(std::os::fd::AsFd::as_fd(poller))
}

/// `poll` has none.
#[cfg(not(any(paceline_epoll, paceline_ports)))]
pub(super) fn descriptor(_: &Poller) -> Option<BorrowedFd<'_>> {
    None
}

/// # Safety
///
/// `raw` stays open until it is deleted.
pub(super) unsafe fn add(poller: &Poller, raw: RawSource, key: usize) -> io::Result<()> {
    check(raw)?;
    // Not every poller asks whether there is such a descriptor.
    rustix::io::fcntl_getfd(borrow(raw))?;
    // SAFETY: as the caller promises.
    unsafe { poller.add(raw, Event::none(key)) }
}

pub(super) fn modify(poller: &Poller, raw: RawSource, interest: Event) -> io::Result<()> {
    poller.modify(borrow(raw), interest)
}

pub(super) fn delete(poller: &Poller, raw: RawSource) -> io::Result<()> {
    poller.delete(borrow(raw))
}

/// Refuses what cannot be a descriptor, and must not be borrowed as one.
pub(super) fn check(raw: RawFd) -> io::Result<()> {
    if raw < 0 { Err(rustix::io::Errno::BADF.into()) } else { Ok(()) }
}

pub(super) fn borrow<'a>(raw: RawFd) -> BorrowedFd<'a> {
    // SAFETY: a registered descriptor stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedFd::borrow_raw(raw) }
}
