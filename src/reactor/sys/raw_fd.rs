//! The sources of a poller of descriptors: descriptors.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use polling::{Event, Poller};

use super::now;
use crate::reactor::Direction;

/// The operating system's name for a source.
pub(crate) type RawSource = RawFd;

/// Returns the source of a descriptor.
pub(crate) fn of_fd(fd: BorrowedFd<'_>) -> RawSource {
    fd.as_raw_fd()
}

/// Returns the descriptor that a poller waits on.
#[cfg(any(paceline_epoll, paceline_ports))]
pub(super) fn descriptor(poller: &Poller) -> Option<BorrowedFd<'_>> {
    Some(std::os::fd::AsFd::as_fd(poller))
}

/// Returns none: `poll` has no descriptor.
#[cfg(not(any(paceline_epoll, paceline_ports)))]
pub(super) fn descriptor(_: &Poller) -> Option<BorrowedFd<'_>> {
    None
}

/// Adds a source, for no direction yet. Returns an error for a descriptor that is not open.
///
/// # Safety
///
/// `raw` stays open until it is deleted.
pub(super) unsafe fn add(poller: &Poller, raw: RawSource, key: usize) -> io::Result<()> {
    check(raw)?;
    // Not every poller checks that the descriptor exists.
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

pub(super) fn is_ready(raw: RawSource, direction: Direction) -> bool {
    now::is_ready(borrow(raw), direction)
}

/// Rejects a number that cannot be a descriptor, and must not be borrowed as one.
pub(super) fn check(raw: RawFd) -> io::Result<()> {
    if raw < 0 { Err(rustix::io::Errno::BADF.into()) } else { Ok(()) }
}

/// Borrows the descriptor of a source that is registered, or is just being added, and so is open.
pub(super) fn borrow<'a>(raw: RawFd) -> BorrowedFd<'a> {
    // SAFETY: a registered descriptor stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedFd::borrow_raw(raw) }
}
