//! What Windows can wait for besides sockets: processes, events, timers and other handles.

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
    /// Registers a handle.
    ///
    /// # Errors
    ///
    /// The handle is dropped, and the error is that of the operating system.
    pub fn new(handle: T) -> io::Result<Self> {
        let raw = raw::of_handle(handle.as_handle());
        // SAFETY: whatever lends a handle out keeps it open.
        unsafe { Async::register(raw, handle) }.map(Self).map_err(errors::not_registered)
    }
}

impl<T> Waitable<T> {
    /// The inner handle.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// The inner handle, mutable.
    ///
    /// # Safety
    ///
    /// The caller must not drop, close or replace it.
    pub unsafe fn get_mut(&mut self) -> &mut T {
        // SAFETY: as the caller promises.
        unsafe { self.0.get_mut() }
    }

    /// Ends the registration and gives the inner handle back.
    ///
    /// # Errors
    ///
    /// Those of the operating system. The handle is dropped then.
    pub fn into_inner(self) -> io::Result<T> {
        self.0.into_inner()
    }

    /// Waits until the handle is signaled.
    pub fn ready(&self) -> Ready<'_, T> {
        Ready::new(&self.0)
    }

    /// The form of [`ready`](Waitable::ready) for hand-written futures: the task of the last caller is woken.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_readable(cx)
    }
}

conversions!(
    Waitable, Waitable::new;
    AsHandle::as_handle -> BorrowedHandle, AsRawHandle::as_raw_handle -> RawHandle, OwnedHandle
);
