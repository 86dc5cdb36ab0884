//! The sources of a completion port: a socket, or a handle that can be waited for.

use std::io;
use std::os::windows::io::{AsRawHandle, AsRawSocket, BorrowedHandle, BorrowedSocket, RawHandle, RawSocket};

use polling::os::iocp::PollerIocpExt;
use polling::{Event, PollMode, Poller};

use crate::reactor::Direction;

/// The operating system's name for a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawSource {
    Socket(RawSocket),
    Waitable(RawHandle),
}

// SAFETY: a handle is a number that every thread of the process may use; its pointer type means nothing.
unsafe impl Send for RawSource {}
// SAFETY: as above.
unsafe impl Sync for RawSource {}

/// Returns the source of a socket.
pub(crate) fn of_socket(socket: BorrowedSocket<'_>) -> RawSource {
    RawSource::Socket(socket.as_raw_socket())
}

/// Returns the source of a handle.
pub(crate) fn of_handle(handle: BorrowedHandle<'_>) -> RawSource {
    RawSource::Waitable(handle.as_raw_handle())
}

/// Adds a source, for no direction yet.
///
/// # Safety
///
/// `raw` stays open until it is deleted.
pub(super) unsafe fn add(poller: &Poller, raw: RawSource, key: usize) -> io::Result<()> {
    match raw {
        // SAFETY: as the caller promises.
        RawSource::Socket(socket) => unsafe { poller.add(socket, Event::none(key)) },
        // SAFETY: as the caller promises.
        RawSource::Waitable(handle) => unsafe {
            poller.add_waitable(handle, Event::none(key), PollMode::Oneshot)
        },
    }
}

/// Arms a source for the directions of `interest`, until it reports once.
pub(super) fn modify(poller: &Poller, raw: RawSource, interest: Event) -> io::Result<()> {
    match raw {
        RawSource::Socket(socket) => poller.modify(borrow_socket(socket), interest),
        RawSource::Waitable(handle) => {
            poller.modify_waitable(borrow_handle(handle), interest, PollMode::Oneshot)
        }
    }
}

/// Removes a source.
pub(super) fn delete(poller: &Poller, raw: RawSource) -> io::Result<()> {
    match raw {
        RawSource::Socket(socket) => poller.delete(borrow_socket(socket)),
        RawSource::Waitable(handle) => poller.remove_waitable(borrow_handle(handle)),
    }
}

/// Returns true, because a source cannot be asked here whether it is ready.
pub(super) fn is_ready(_: RawSource, _: Direction) -> bool {
    true
}

/// Borrows a socket that is registered, or is just being added, and so is open.
fn borrow_socket<'a>(raw: RawSocket) -> BorrowedSocket<'a> {
    // SAFETY: a registered socket stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedSocket::borrow_raw(raw) }
}

/// Borrows a handle that is registered, or is just being added, and so is open.
fn borrow_handle<'a>(raw: RawHandle) -> BorrowedHandle<'a> {
    // SAFETY: a registered handle stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedHandle::borrow_raw(raw) }
}
