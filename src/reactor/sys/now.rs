//! Asks poll(2) about a descriptor.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::reactor::Direction;

#[cfg(any(target_os = "linux", target_os = "android"))]
const READABLE: PollFlags = PollFlags::IN.union(PollFlags::PRI).union(PollFlags::RDHUP);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const READABLE: PollFlags = PollFlags::IN.union(PollFlags::PRI);

/// Returns whether a descriptor is ready in this direction. True where the system does not answer: the
/// operation that follows finds out. True also for descriptors that are no sockets, pipes or devices: polling
/// some of these, such as perf events, consumes what they report, and the caller has already seen that event.
pub(super) fn is_ready(fd: BorrowedFd<'_>, direction: Direction) -> bool {
    let asked = match direction {
        Direction::Read => READABLE,
        Direction::Write => PollFlags::OUT,
    };
    ask(fd, asked).is_none_or(|said| !said.is_empty()) || !is_polled_without_effect(fd)
}

/// Returns whether the descriptor is a socket, a pipe or a character device: polling one consumes nothing.
fn is_polled_without_effect(fd: BorrowedFd<'_>) -> bool {
    use rustix::fs::{FileType, fstat};
    let file_type = fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    file_type.is_ok_and(|kind| matches!(kind, FileType::Socket | FileType::Fifo | FileType::CharacterDevice))
}

/// Returns what the system reports of a descriptor: flags of `asked`, errors and hang-ups. `None` if the call
/// fails.
pub(super) fn ask(fd: BorrowedFd<'_>, asked: PollFlags) -> Option<PollFlags> {
    let mut asks = [PollFd::from_borrowed_fd(fd, asked)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asks, Some(&at_once)).ok()?;
    Some(asks[0].revents())
}
