//! The sources of kqueue: a descriptor, a signal, or a child process.

use std::io;
use std::num::NonZeroI32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use polling::os::kqueue::{PollerKqueueExt, Process, ProcessOps, Signal};
use polling::{Event, PollMode, Poller};

use super::now;
use crate::reactor::Direction;

/// The operating system's name for a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawSource {
    Fd(RawFd),
    /// A signal, by its number.
    Signal(i32),
    /// A child's exit.
    Exit(NonZeroI32),
}

/// Returns the source of a descriptor.
pub(crate) fn of_fd(fd: BorrowedFd<'_>) -> RawSource {
    RawSource::Fd(fd.as_raw_fd())
}

/// Returns the descriptor that a poller waits on.
pub(super) fn descriptor(poller: &Poller) -> Option<BorrowedFd<'_>> {
    Some(poller.as_fd())
}

/// Adds a source: a descriptor for no direction yet; a signal or a process so that it reports once.
///
/// # Safety
///
/// `raw` stays open, and a child unreaped, until it is deleted.
pub(super) unsafe fn add(poller: &Poller, raw: RawSource, key: usize) -> io::Result<()> {
    match raw {
        RawSource::Fd(fd) if fd < 0 => Err(rustix::io::Errno::BADF.into()),
        // SAFETY: as the caller promises.
        RawSource::Fd(fd) => unsafe { poller.add(fd, Event::none(key)) },
        RawSource::Signal(signal) => poller.add_filter(Signal(signal), key, PollMode::Oneshot),
        RawSource::Exit(pid) => poller.add_filter(exit(pid), key, PollMode::Oneshot),
    }
}

/// Changes the interest in a descriptor. A signal or a process, which has only one thing to report, is armed
/// again, whatever the interest is: only its key counts.
pub(super) fn modify(poller: &Poller, raw: RawSource, interest: Event) -> io::Result<()> {
    match raw {
        RawSource::Fd(fd) => poller.modify(borrow(fd), interest),
        RawSource::Signal(signal) => poller.modify_filter(Signal(signal), interest.key, PollMode::Oneshot),
        RawSource::Exit(pid) => poller.modify_filter(exit(pid), interest.key, PollMode::Oneshot),
    }
}

/// Removes a source.
pub(super) fn delete(poller: &Poller, raw: RawSource) -> io::Result<()> {
    match raw {
        RawSource::Fd(fd) => poller.delete(borrow(fd)),
        RawSource::Signal(signal) => poller.delete_filter(Signal(signal)),
        RawSource::Exit(pid) => poller.delete_filter(exit(pid)),
    }
}

/// Returns whether a source is ready in this direction right now. True for signals and processes, which
/// cannot be asked.
pub(super) fn is_ready(raw: RawSource, direction: Direction) -> bool {
    match raw {
        RawSource::Fd(fd) => now::is_ready(borrow(fd), direction),
        RawSource::Signal(_) | RawSource::Exit(_) => true,
    }
}

/// Borrows the descriptor of a source that is registered, or is just being added, and so is open.
fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: a registered descriptor stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Returns the filter for the exit of a child that is registered, or is just being added.
fn exit<'a>(pid: NonZeroI32) -> Process<'a> {
    // SAFETY: a registered child is a child of this process until it is deleted, as the caller of `add`
    // promised.
    unsafe { Process::from_pid(pid, ProcessOps::Exit) }
}
