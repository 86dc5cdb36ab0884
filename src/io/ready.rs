//! The futures of [`Async::readable`], [`Async::writable`] and their owned forms.
//!
//! Each is a [`BlindWait`] and a handle whose registration it waits on: what the program does with the handle
//! afterwards happens out of our sight.

use super::async_handle::Async;
use crate::reactor::{BlindWait, Direction};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Waits until a handle is readable; made by [`Async::readable`].
///
/// # Examples
///
/// ```
/// use paceline::{Async, Readable};
/// use std::net::UdpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
///     let wait: Readable<'_, UdpSocket> = socket.readable();
///     wait.await
/// })
/// # }
/// ```
#[must_use = "a wait does nothing unless it is awaited"]
pub struct Readable<'a, T> {
    wait: BlindWait,
    handle: &'a Async<T>,
}

/// Waits until a shared handle is readable; made by [`Async::readable_owned`].
///
/// # Examples
///
/// ```
/// use paceline::{Async, ReadableOwned};
/// use std::net::UdpSocket;
/// use std::sync::Arc;
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let socket = Arc::new(Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?);
///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
///     let wait: ReadableOwned<UdpSocket> = socket.readable_owned();
///     wait.await
/// })
/// # }
/// ```
#[must_use = "a wait does nothing unless it is awaited"]
pub struct ReadableOwned<T> {
    wait: BlindWait,
    handle: Arc<Async<T>>,
}

/// Waits until a handle is writable; made by [`Async::writable`].
///
/// # Examples
///
/// ```
/// use paceline::{Async, Writable};
/// use std::net::UdpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
/// let wait: Writable<'_, UdpSocket> = socket.writable();
/// paceline::block_on(wait)
/// # }
/// ```
#[must_use = "a wait does nothing unless it is awaited"]
pub struct Writable<'a, T> {
    wait: BlindWait,
    handle: &'a Async<T>,
}

/// Waits until a shared handle is writable; made by [`Async::writable_owned`].
///
/// # Examples
///
/// ```
/// use paceline::{Async, WritableOwned};
/// use std::net::UdpSocket;
/// use std::sync::Arc;
///
/// # fn main() -> std::io::Result<()> {
/// let socket = Arc::new(Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?);
/// let wait: WritableOwned<UdpSocket> = socket.writable_owned();
/// paceline::block_on(wait)
/// # }
/// ```
#[must_use = "a wait does nothing unless it is awaited"]
pub struct WritableOwned<T> {
    wait: BlindWait,
    handle: Arc<Async<T>>,
}

impl<'a, T> Readable<'a, T> {
    pub(super) fn new(handle: &'a Async<T>) -> Self {
        Self { wait: BlindWait::new(Direction::Read), handle }
    }
}

impl<T> ReadableOwned<T> {
    pub(super) fn new(handle: Arc<Async<T>>) -> Self {
        Self { wait: BlindWait::new(Direction::Read), handle }
    }
}

impl<'a, T> Writable<'a, T> {
    pub(super) fn new(handle: &'a Async<T>) -> Self {
        Self { wait: BlindWait::new(Direction::Write), handle }
    }
}

impl<T> WritableOwned<T> {
    pub(super) fn new(handle: Arc<Async<T>>) -> Self {
        Self { wait: BlindWait::new(Direction::Write), handle }
    }
}

impl<T> Future for Readable<'_, T> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { wait, handle } = &mut *self;
        wait.poll(handle.source(), cx)
    }
}

impl<T> Future for ReadableOwned<T> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { wait, handle } = &mut *self;
        wait.poll(handle.source(), cx)
    }
}

impl<T> Future for Writable<'_, T> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { wait, handle } = &mut *self;
        wait.poll(handle.source(), cx)
    }
}

impl<T> Future for WritableOwned<T> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { wait, handle } = &mut *self;
        wait.poll(handle.source(), cx)
    }
}

// Written out because a derive would ask for `T: Debug`.

impl<T> fmt::Debug for Readable<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readable").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ReadableOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadableOwned").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Writable<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for WritableOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritableOwned").field("wait", &self.wait).finish_non_exhaustive()
    }
}
