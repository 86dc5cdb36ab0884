//! What a completion port watches: a socket, or a handle that can be waited for.

use std::io;
use std::os::windows::io::{AsRawHandle, AsRawSocket, BorrowedHandle, BorrowedSocket, RawHandle, RawSocket};

use polling::os::iocp::PollerIocpExt;
use polling::{Event, PollMode, Poller};

/// The operating system's name for a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawSource {
    Socket(RawSocket),
    Waitable(RawHandle),
}

// SAFETY: a handle is a number that every thread of the process may use; that it is typed as a pointer means nothing.
unsafe impl Send for RawSource {}
// SAFETY: as above.
unsafe impl Sync for RawSource {}

/// The source that a socket is.
pub(crate) fn of_socket(socket: BorrowedSocket<'_>) -> RawSource {
    RawSource::Socket(socket.as_raw_socket())
}

/// The source that a handle is.
pub(crate) fn of_handle(handle: BorrowedHandle<'_>) -> RawSource {
    RawSource::Waitable(handle.as_raw_handle())
}

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

pub(super) fn modify(poller: &Poller, raw: RawSource, interest: Event) -> io::Result<()> {
    match raw {
        RawSource::Socket(socket) => poller.modify(borrow_socket(socket), interest),
        RawSource::Waitable(handle) => {
            poller.modify_waitable(borrow_handle(handle), interest, PollMode::Oneshot)
        }
    }
}

pub(super) fn delete(poller: &Poller, raw: RawSource) -> io::Result<()> {
    match raw {
        RawSource::Socket(socket) => poller.delete(borrow_socket(socket)),
        RawSource::Waitable(handle) => poller.remove_waitable(borrow_handle(handle)),
    }
}

fn borrow_socket<'a>(raw: RawSocket) -> BorrowedSocket<'a> {
    // SAFETY: a registered socket stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedSocket::borrow_raw(raw) }
}

fn borrow_handle<'a>(raw: RawHandle) -> BorrowedHandle<'a> {
    // SAFETY: a registered handle stays open until it is deleted, as the caller of `add` promised.
    unsafe { BorrowedHandle::borrow_raw(raw) }
}
