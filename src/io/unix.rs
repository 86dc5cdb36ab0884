//! Creating an [`Async`] from a Unix descriptor.

use super::async_handle::Async;
use super::conversions::conversions;
use super::errors;
use super::sys;
use crate::reactor::raw;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

impl<T: AsFd> Async<T> {
    /// Puts a handle in non-blocking mode and registers it with the reactor of the current runtime.
    ///
    /// On a thread that belongs to no runtime, that is the default instance. Non-blocking mode belongs to the
    /// open file, not to the descriptor: clones of the handle, in this process or another, become
    /// non-blocking too.
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
    /// Drops the handle and returns an error of the kind
    ///
    /// * `PermissionDenied` if readiness makes no sense for the handle, as for a regular file or a directory;
    /// * `AlreadyExists` if the descriptor is registered already;
    /// * of the operating system's error otherwise, for a descriptor that is not open or a poller that is out
    ///   of memory.
    pub fn new(io: T) -> io::Result<Async<T>> {
        sys::set_nonblocking(io.as_fd()).map_err(errors::not_registered)?;
        Self::new_nonblocking(io)
    }

    /// Registers a handle that is in non-blocking mode already, which saves a system call.
    ///
    /// A handle that is in fact in blocking mode blocks the thread in its first operation that cannot
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
        // SAFETY: a type that lends a descriptor out (`AsFd`) keeps it open, and `Async` owns `io`.
        unsafe { Async::register(raw::of_fd(io.as_fd()), io) }.map_err(errors::not_registered)
    }
}

conversions!(Async, Async::new; AsFd::as_fd -> BorrowedFd, AsRawFd::as_raw_fd -> RawFd, OwnedFd);
