//! Waiting on an [`Async`] of any type: for readiness, or until an operation of the caller succeeds.

use super::async_handle::Async;
use super::ready::{Readable, ReadableOwned, Writable, WritableOwned};
use super::retry::retry;
use crate::reactor::Direction;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

impl<T> Async<T> {
    /// Waits until the handle is readable: it has bytes, an incoming connection, an end of stream or an
    /// error.
    ///
    /// This is for code that reads elsewhere. A handle that has bytes *already* is reported as well, so a
    /// loop that awaits `readable` and then reads a little works. When the wait ends, the handle is readable,
    /// but another task may read before the caller does: be prepared for `WouldBlock`, and wait again.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use futures_lite::AsyncWriteExt;
    /// use paceline::Async;
    /// use std::io::Read;
    /// use std::os::unix::net::UnixStream;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let (reader, mut writer) = Async::<UnixStream>::pair()?;
    ///     writer.write_all(b"ab").await?;
    ///
    ///     let mut byte = [0];
    ///     reader.readable().await?;
    ///     reader.get_ref().read_exact(&mut byte)?;
    ///     reader.readable().await?;
    ///     reader.get_ref().read_exact(&mut byte)?;
    ///     assert_eq!(&byte, b"b");
    ///     Ok(())
    /// })
    /// # }
    /// # main().unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the poller when it is asked to watch the handle.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and loses no event. Any number of tasks may wait at once.
    pub fn readable(&self) -> Readable<'_, T> {
        Readable::new(self)
    }

    /// Like [`readable`](Async::readable), with a future that owns a share of the handle and borrows nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Arc::new(Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?);
    ///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
    ///     socket.clone().readable_owned().await?;
    ///     assert_eq!(socket.get_ref().recv(&mut [0; 16])?, 9);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`readable`](Async::readable).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`readable`](Async::readable).
    pub fn readable_owned(self: Arc<Self>) -> ReadableOwned<T> {
        ReadableOwned::new(self)
    }

    /// Waits until the handle is writable: its buffer has room, or an error is to be collected.
    ///
    /// The counterpart of [`readable`](Async::readable), with the same guarantees.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.writable().await?;
    ///     socket.get_ref().send_to(b"ping", socket.get_ref().local_addr()?)?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`readable`](Async::readable).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`readable`](Async::readable).
    pub fn writable(&self) -> Writable<'_, T> {
        Writable::new(self)
    }

    /// Like [`writable`](Async::writable), with a future that owns a share of the handle and borrows nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let socket = Arc::new(Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?);
    /// paceline::block_on(socket.writable_owned())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`readable`](Async::readable).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`readable`](Async::readable).
    pub fn writable_owned(self: Arc<Self>) -> WritableOwned<T> {
        WritableOwned::new(self)
    }

    /// Returns [`Poll::Ready`] if the handle became readable since the last call that returned
    /// [`Poll::Pending`].
    ///
    /// This is for a `poll_*` method that does its I/O elsewhere: try the I/O first, and call this after a
    /// `WouldBlock`. The first call of a wait always returns `Pending` and arms interest, so a handle that is
    /// readable already wakes the task at once. If several tasks wait, all of them are woken, and the first
    /// one that calls gets [`Poll::Ready`]; the others try their I/O and wait again.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::future::poll_fn;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
    ///     poll_fn(|cx| socket.poll_readable(cx)).await
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`readable`](Async::readable).
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_until_ready(Direction::Read, cx)
    }

    /// Returns [`Poll::Ready`] if the handle became writable since the last call that returned
    /// [`Poll::Pending`].
    ///
    /// The counterpart of [`poll_readable`](Async::poll_readable), with the same guarantees.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::future::poll_fn;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    /// paceline::block_on(poll_fn(|cx| socket.poll_writable(cx)))
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`readable`](Async::readable).
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_until_ready(Direction::Write, cx)
    }

    fn poll_until_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let source = self.source();
        source.poll_shared(direction, |after| source.poll_until_ready(direction, after, cx))
    }

    /// Runs a read operation, and again each time that the handle becomes readable, until the operation
    /// returns something other than [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// The operation may return `WouldBlock` for a reason of its own: it runs again when the handle is (or
    /// still is) readable, and whenever the task is polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
    ///     let mut buf = [0; 16];
    ///     let (n, _from) = socket.read_with(|s| s.recv_from(&mut buf)).await?;
    ///     assert_eq!(&buf[..n], b"to myself");
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the operation, except `WouldBlock`, and those of the poller.
    ///
    /// # Cancel safety
    ///
    /// Between two runs of the operation the future holds no data of its own: dropping it loses only what the
    /// operation holds.
    pub async fn read_with<R>(&self, mut op: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        retry(self.source(), Direction::Read, || op(self.get_ref())).await
    }

    /// Like [`read_with`](Async::read_with), for an operation that needs the handle mutable.
    ///
    /// # Safety
    ///
    /// The operation must not drop, close or replace the descriptor of the handle.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use futures_lite::AsyncWriteExt;
    /// use paceline::Async;
    /// use std::io::{BufRead, BufReader};
    /// use std::os::fd::{AsFd, BorrowedFd};
    /// use std::os::unix::net::UnixStream;
    ///
    /// struct Lines(BufReader<UnixStream>);
    ///
    /// impl AsFd for Lines {
    ///     fn as_fd(&self) -> BorrowedFd<'_> {
    ///         self.0.get_ref().as_fd()
    ///     }
    /// }
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let mut lines = Async::new(Lines(BufReader::new(ours)))?;
    ///     Async::new(theirs)?.write_all(b"one\ntwo\n").await?;
    ///
    ///     let mut line = String::new();
    ///     // SAFETY: `read_line` reads from the stream and leaves it where it is.
    ///     unsafe { lines.read_with_mut(|l| l.0.read_line(&mut line)) }.await?;
    ///     assert_eq!(line, "one\n");
    ///     Ok(())
    /// })
    /// # }
    /// # main().unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`read_with`](Async::read_with).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`read_with`](Async::read_with).
    pub async unsafe fn read_with_mut<R>(
        &mut self,
        mut op: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        // SAFETY: the caller promises that `op` leaves the descriptor where it is.
        let (source, io) = unsafe { self.parts_mut() };
        retry(source, Direction::Read, || op(io)).await
    }

    /// Runs a write operation, and again each time that the handle becomes writable, until the operation
    /// returns something other than [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// The counterpart of [`read_with`](Async::read_with), with the same guarantees.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = socket.get_ref().local_addr()?;
    ///     assert_eq!(socket.write_with(|s| s.send_to(b"ping", addr)).await?, 4);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`read_with`](Async::read_with).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`read_with`](Async::read_with).
    pub async fn write_with<R>(&self, mut op: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        retry(self.source(), Direction::Write, || op(self.get_ref())).await
    }

    /// Like [`write_with`](Async::write_with), for an operation that needs the handle mutable.
    ///
    /// # Safety
    ///
    /// The operation must not drop, close or replace the descriptor of the handle.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let mut socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = socket.get_ref().local_addr()?;
    ///     // SAFETY: the socket stays where it is.
    ///     assert_eq!(unsafe { socket.write_with_mut(|s| s.send_to(b"ping", addr)) }.await?, 4);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`read_with`](Async::read_with).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`read_with`](Async::read_with).
    pub async unsafe fn write_with_mut<R>(
        &mut self,
        mut op: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        // SAFETY: the caller promises that `op` leaves the descriptor where it is.
        let (source, io) = unsafe { self.parts_mut() };
        retry(source, Direction::Write, || op(io)).await
    }
}
