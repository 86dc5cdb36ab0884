//! Waiting for processes, events, timers and other handles, which Windows supports besides sockets.

use crate::io::Async;
use crate::io::conversions::conversions;
use crate::io::errors;
use crate::reactor::raw;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle, RawHandle};
use std::task::{Context, Poll};

pub use crate::io::ready::Ready;

/// A handle that can be waited for, registered with the reactor of the current runtime.
///
/// # Examples
///
/// ```no_run
/// use paceline::os::windows::Waitable;
/// use std::process::Command;
///
/// # fn main() -> std::io::Result<()> {
/// let child = Command::new("cmd").args(["/C", "exit"]).spawn()?;
/// let child = Waitable::new(child)?;
/// paceline::block_on(child.ready())
/// # }
/// ```
#[derive(Debug)]
pub struct Waitable<T>(Async<T>);

impl<T: AsHandle> Waitable<T> {
    /// Registers a handle with the reactor of the current runtime. On a thread that belongs to no runtime,
    /// that is the default instance.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system. The handle is dropped in that case.
    pub fn new(handle: T) -> io::Result<Self> {
        let raw = raw::of_handle(handle.as_handle());
        // SAFETY: a type that lends a handle out (`AsHandle`) keeps it open, and `Async` owns `handle`.
        unsafe { Async::register(raw, handle) }.map(Self).map_err(errors::not_registered)
    }
}

impl<T> Waitable<T> {
    /// Returns a reference to the inner handle.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// Returns a mutable reference to the inner handle.
    ///
    /// # Safety
    ///
    /// The caller must not drop, close or replace the handle.
    pub unsafe fn get_mut(&mut self) -> &mut T {
        // SAFETY: as the caller promises.
        unsafe { self.0.get_mut() }
    }

    /// Ends the registration and returns the inner handle.
    ///
    /// # Errors
    ///
    /// Returns the errors of the operating system. The handle is dropped in that case.
    pub fn into_inner(self) -> io::Result<T> {
        self.0.into_inner()
    }

    /// Waits until the handle is signaled.
    pub fn ready(&self) -> Ready<'_, T> {
        Ready::new(&self.0)
    }

    /// Polls for the handle to be signaled, for hand-written futures. Only the task of the last caller is
    /// woken.
    ///
    /// # Errors
    ///
    /// Returns the errors of the operating system.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_readable(cx)
    }
}

conversions!(
    Waitable, Waitable::new;
    AsHandle::as_handle -> BorrowedHandle, AsRawHandle::as_raw_handle -> RawHandle, OwnedHandle
);
