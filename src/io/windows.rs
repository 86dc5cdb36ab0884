//! Creating an [`Async`] from a Windows socket.

use super::async_handle::Async;
use super::conversions::conversions;
use super::errors;
use super::sys;
use crate::reactor::raw;
use std::io;
use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, OwnedSocket, RawSocket};

impl<T: AsSocket> Async<T> {
    /// Puts a socket in non-blocking mode and registers it with the reactor of the current runtime.
    ///
    /// On a thread that belongs to no runtime, that is the default instance. Non-blocking mode belongs to the
    /// socket, not to the handle: clones of the handle become non-blocking too.
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
    /// Drops the socket and returns an error of the kind `AlreadyExists` if the socket is registered already,
    /// and of the kind of the operating system's error otherwise.
    pub fn new(io: T) -> io::Result<Async<T>> {
        sys::set_nonblocking(io.as_socket()).map_err(errors::not_registered)?;
        Self::new_nonblocking(io)
    }

    /// Registers a socket that is in non-blocking mode already, which saves a system call.
    ///
    /// A socket that is in fact in blocking mode blocks the thread in its first operation that cannot
    /// proceed.
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
    /// The same as for [`new`](Async::new).
    pub fn new_nonblocking(io: T) -> io::Result<Async<T>> {
        // SAFETY: a type that lends a socket out (`AsSocket`) keeps it open, and `Async` owns `io`.
        unsafe { Async::register(raw::of_socket(io.as_socket()), io) }.map_err(errors::not_registered)
    }
}

conversions!(
    Async, Async::new;
    AsSocket::as_socket -> BorrowedSocket, AsRawSocket::as_raw_socket -> RawSocket, OwnedSocket
);
