//! [`Async`]: a handle in non-blocking mode and its registration with a reactor.

use crate::budget;
use crate::current::current_reactor;
use crate::reactor::raw::RawSource;
use crate::reactor::{Direction, Source};
use std::future::poll_fn;
use std::io;
use std::task::Context;

/// Async I/O for a handle that the operating system can poll for readiness.
///
/// Wraps a socket, a pipe, a terminal, a timerfd or any other handle that epoll, kqueue or the like can watch
/// and that implements `AsFd` (on Windows `AsSocket`). Regular files cannot be watched.
///
/// * The socket types of the standard library have their operations as methods, such as
///   [`Async::<TcpStream>::connect`].
/// * If `T` implements `Read` or `Write`, `Async<T>` implements `AsyncRead` or `AsyncWrite` of `futures`, and
///   so does `&Async<T>` for most types.
/// * Other operations go through [`read_with`](Async::read_with) and [`write_with`](Async::write_with), or
///   through [`readable`](Async::readable) and [`writable`](Async::writable) if the I/O happens elsewhere.
///
/// # Sharing
///
/// Methods take `&self`, so any number of tasks may use one handle at once: put it in an
/// [`Arc`](std::sync::Arc). That includes the `poll_*` methods, `AsyncRead` and `AsyncWrite`. An event wakes
/// all tasks that wait for it, and those that find nothing left wait again.
///
/// # Closing
///
/// Dropping the `Async` ends the registration and then drops the inner `T`, which closes the descriptor.
/// Closing a socket does not wait until the written bytes have reached the peer.
///
/// `AsyncWrite::poll_close` only flushes. To end one direction of a stream, call
/// [`shutdown`](std::net::TcpStream::shutdown) of the inner stream. The `poll_close` of a
/// [`net::TcpStream`](crate::net::TcpStream) does that.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
/// use paceline::Async;
/// use std::net::{TcpListener, TcpStream};
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
///     let addr = listener.get_ref().local_addr()?;
///     let (mut client, (mut server, _)) =
///         future::try_zip(Async::<TcpStream>::connect(addr), listener.accept()).await?;
///
///     client.write_all(b"hello").await?;
///     let mut buf = [0; 5];
///     server.read_exact(&mut buf).await?;
///     assert_eq!(&buf, b"hello");
///     Ok(())
/// })
/// # }
/// ```
///
/// [`Async::<TcpStream>::connect`]: Async#method.connect
#[derive(Debug)]
pub struct Async<T> {
    // Fields are dropped in this order: the registration ends before the descriptor can be closed.
    source: Source,
    io: T,
}

// No field is pinned: a `T` that must not move has to be pinned by its owner.
impl<T> Unpin for Async<T> {}

impl<T> Async<T> {
    /// Registers a handle with the reactor of the current runtime. If that fails, drops the handle and
    /// returns the error.
    ///
    /// # Safety
    ///
    /// `raw` names `io`, or a descriptor that `io` keeps open until `io` is dropped.
    pub(super) unsafe fn register(raw: RawSource, io: T) -> io::Result<Self> {
        // SAFETY: `io` moves in beside its `Source`, which is dropped or deregistered before `io` (field
        // order, and `into_inner`). Until then `io` is only lent out as `&T`, which keeps the descriptor
        // open, or as `&mut T` under the promise of `IoSafe` or of the caller of an unsafe method.
        let source = unsafe { Source::new(current_reactor()?, raw)? };
        Ok(Self { source, io })
    }

    #[doc(hidden)]
    pub fn wakes_last(mut self) -> Self {
        self.source.wakes_last = true;
        self
    }

    /// Returns the registration, for the operations of this module.
    #[doc(hidden)]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Runs `op` on the handle until it returns something else than `WouldBlock`, waiting for readiness in
    /// between: see [`Source::poll_io`].
    pub(super) async fn perform<R>(
        &self,
        direction: Direction,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut poll = |cx: &mut Context<'_>| self.source.poll_io(direction, cx, || op(&self.io));
        poll_fn(|cx| budget::spend(cx.waker(), || poll(cx))).await
    }

    /// Returns the registration and a mutable reference to the handle.
    ///
    /// # Safety
    ///
    /// The same as for [`get_mut`](Async::get_mut).
    pub(super) unsafe fn parts_mut(&mut self) -> (&Source, &mut T) {
        (&self.source, &mut self.io)
    }

    /// Returns a reference to the inner handle, for its options and addresses.
    ///
    /// The handle is in non-blocking mode: reading from it directly may return `WouldBlock`.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::TcpListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    /// assert_ne!(listener.get_ref().local_addr()?.port(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    /// Returns a mutable reference to the inner handle.
    ///
    /// # Safety
    ///
    /// The caller must not drop, close or replace the descriptor of the handle, for example with
    /// [`std::mem::replace`]: the reactor identifies the descriptor by its number.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::TcpListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let mut listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    /// // SAFETY: the listener stays where it is.
    /// let inner = unsafe { listener.get_mut() };
    /// inner.set_ttl(64)?;
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn get_mut(&mut self) -> &mut T {
        &mut self.io
    }

    /// Ends the registration and returns the inner handle.
    ///
    /// The handle stays in non-blocking mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::TcpListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    /// let inner: TcpListener = listener.into_inner()?;
    /// inner.set_nonblocking(false)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of the deregistration. The handle is dropped in that case.
    pub fn into_inner(self) -> io::Result<T> {
        let Self { source, io } = self;
        source.deregister()?;
        Ok(io)
    }
}
