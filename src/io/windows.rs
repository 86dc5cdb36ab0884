//! How an [`Async`] is made from a Windows socket, and turned back.

use super::async_handle::Async;
use super::errors;
use super::sys;
use crate::pool::current_reactor;
use crate::reactor::{Source, raw};
use std::io;
use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, OwnedSocket, RawSocket};

impl<T: AsSocket> Async<T> {
    /// Puts a socket in non-blocking mode and registers it with the reactor of the current runtime.
    ///
    /// On a thread that belongs to no runtime that is the reactor of the default one. Non-blocking mode belongs to
    /// the socket, not to the handle: clones of the handle get it too.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::TcpListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let listener = Async::new(listener)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The socket is dropped, and the error's kind is `AlreadyExists` if the socket is registered already, that of
    /// the operating system otherwise.
    pub fn new(io: T) -> io::Result<Async<T>> {
        sys::set_nonblocking(io.as_socket()).map_err(errors::not_registered)?;
        Self::new_nonblocking(io)
    }

    /// Registers a socket that is in non-blocking mode already, which saves a system call.
    ///
    /// A socket that is in blocking mode after all will block the thread in its first operation that cannot proceed.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::TcpListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// listener.set_nonblocking(true)?;
    /// let listener = Async::new_nonblocking(listener)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`new`](Async::new).
    pub fn new_nonblocking(io: T) -> io::Result<Async<T>> {
        let reactor = current_reactor()?;
        let raw = raw::of_socket(io.as_socket());
        // SAFETY: `io` owns the socket and moves into the `Async` right after its `Source`, which is dropped or
        // deregistered first. In between `io` is only lent out as `&T`, which keeps the socket open, or as `&mut T`
        // under the promise of `IoSafe` or of an unsafe method.
        let source = unsafe { Source::new(reactor, raw) }.map_err(errors::not_registered)?;
        // SAFETY: `source` was made from the socket of `io`, for which the same holds.
        Ok(unsafe { Async::from_parts(source, io) })
    }
}

impl<T: AsRawSocket> AsRawSocket for Async<T> {
    fn as_raw_socket(&self) -> RawSocket {
        self.get_ref().as_raw_socket()
    }
}

impl<T: AsSocket> AsSocket for Async<T> {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.get_ref().as_socket()
    }
}

impl<T: AsSocket + From<OwnedSocket>> TryFrom<OwnedSocket> for Async<T> {
    type Error = io::Error;

    fn try_from(socket: OwnedSocket) -> Result<Self, Self::Error> {
        Async::new(socket.into())
    }
}

impl<T: Into<OwnedSocket>> TryFrom<Async<T>> for OwnedSocket {
    type Error = io::Error;

    fn try_from(handle: Async<T>) -> Result<Self, Self::Error> {
        handle.into_inner().map(Into::into)
    }
}
