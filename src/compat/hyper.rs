//! What [hyper] 1 requires from a runtime: [`Executor`], [`Timer`], and [`Io`] around a stream. Requires the
//! feature `hyper`.
//!
//! | hyper asks for | give it |
//! |---|---|
//! | `rt::Read + rt::Write` | [`Io::new`] of a [`net::TcpStream`](crate::net::TcpStream) or of a TLS stream |
//! | `rt::Executor` | [`Executor`], or the [`Handle`] of a runtime |
//! | `rt::Timer` | [`Timer`] |
//!
//! [`Io`] takes any stream that implements the traits of `futures`. In the other direction, [`Io::new`] of an
//! upgraded connection implements the traits of `futures`.
//!
//! ```
//! use std::convert::Infallible;
//! use std::future::poll_fn;
//! use std::pin::Pin;
//!
//! use hyper::body::{Body, Incoming};
//! use hyper::service::service_fn;
//! use hyper::{Request, Response, client, server};
//! use paceline::hyper::{Io, Timer};
//! use paceline::net::{TcpListener, TcpStream};
//! use paceline::{block_on, spawn};
//!
//! async fn shout(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
//!     Ok(Response::new(request.uri().path().to_ascii_uppercase()))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! block_on(async {
//!     let listener = TcpListener::bind("localhost:0").await?;
//!     let addr = listener.local_addr()?;
//!     let _server = spawn(async move {
//!         loop {
//!             match listener.accept().await {
//!                 Ok((stream, _peer)) => {
//!                     let mut http = server::conn::http1::Builder::new();
//!                     let http = http.timer(Timer);
//!                     let connection = http.serve_connection(Io::new(stream), service_fn(shout));
//!                     spawn(connection).detach();
//!                 }
//!                 Err(error) => eprintln!("{error}"),
//!             }
//!         }
//!     });
//!
//!     let stream = TcpStream::connect(addr).await?;
//!     let (mut sender, connection) = client::conn::http1::handshake(Io::new(stream)).await?;
//!     spawn(connection).detach();
//!     let request = Request::get("/hello").header("host", "localhost").body(String::new())?;
//!     let mut answer = sender.send_request(request).await?.into_body();
//!     // A longer body has several frames: `http-body-util` collects them.
//!     let frame = poll_fn(|cx| Pin::new(&mut answer).poll_frame(cx)).await.expect("there is one")?;
//!     assert_eq!(frame.into_data().expect("it has data"), "/HELLO");
//!     Ok(())
//! })
//! # }
//! ```
//!
//! [hyper]: https://docs.rs/hyper/1

use std::future::Future;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use ::hyper::rt::{self, ReadBuf, ReadBufCursor, Sleep};
use futures::io::{AsyncRead, AsyncWrite};
use pin_project_lite::pin_project;

use crate::io::{self as ours, Async};
use crate::net::TcpStream;
#[cfg(unix)]
use crate::net::unix::UnixStream;
use crate::runtime::{self, Handle};

/// Spawns hyper's tasks beside a connection, as [`spawn`](crate::spawn) does: onto the runtime of the task or
/// of the [`block_on`](crate::block_on()) in which hyper spawns.
///
/// To choose another runtime, give hyper the [`Handle`] of that one.
///
/// ```
/// use hyper::server::conn::http2;
///
/// # fn main() -> std::io::Result<()> {
/// let here = http2::Builder::new(paceline::hyper::Executor);
///
/// let runtime = paceline::Runtime::builder().threads(1).build()?;
/// let there = http2::Builder::new(runtime.handle());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor;

impl<F> rt::Executor<F> for Executor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, future: F) {
        runtime::spawn(future).detach();
    }
}

impl<F> rt::Executor<F> for Handle
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(future).detach();
    }
}

/// Provides paceline's [timers](crate::Timer) for hyper's timeouts, which without a timer are off, or panic.
///
/// ```
/// use std::time::Duration;
///
/// let mut http = hyper::server::conn::http1::Builder::new();
/// http.timer(paceline::hyper::Timer).header_read_timeout(Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer;

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(SleepTimer(ours::Timer::after(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(SleepTimer(ours::Timer::at(deadline)))
    }

    /// Replaces a sleep of another type by one of this crate.
    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<SleepTimer>() {
            Some(timer) => timer.get_mut().0.set_at(new_deadline),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

/// A timer whose output is `()`, as hyper requires.
struct SleepTimer(ours::Timer);

impl Sleep for SleepTimer {}

impl Future for SleepTimer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

pin_project! {
    /// Implements hyper's traits for a stream with the traits of `futures`, and the traits of `futures` for a
    /// stream with hyper's.
    ///
    /// * A [`net::TcpStream`](crate::net::TcpStream), a
    ///   [`net::unix::UnixStream`](crate::net::unix::UnixStream), an `Async<TcpStream>` and an
    ///   `Async<UnixStream>` are read directly into uninitialized memory. Several slices are written with one
    ///   call. Shutdown shuts the writing side down.
    /// * Any other stream with the traits of `futures` is read into memory that is zeroed first. Hyper does
    ///   not write several slices with one call. Shutdown closes the stream.
    ///
    /// The other direction is for a connection that was upgraded:
    ///
    /// ```
    /// use hyper::upgrade::Upgraded;
    /// use paceline::hyper::Io;
    /// use paceline::prelude::*;
    ///
    /// async fn echo(upgraded: Upgraded) -> std::io::Result<u64> {
    ///     let (read, mut write) = Io::new(upgraded).split();
    ///     futures::io::copy(read, &mut write).await
    /// }
    /// ```
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Io<T> {
        #[pin]
        inner: T,
    }
}

impl<T> Io<T> {
    /// Wraps a stream.
    pub fn new(inner: T) -> Self {
        Self { inner }
    }

    /// Returns a reference to the stream.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns a mutable reference to the stream.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Returns a pinned mutable reference to the stream.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut T> {
        self.project().inner
    }

    /// Returns the stream. The wrapper buffers nothing, so no bytes are lost.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

/// A stream socket of this crate.
trait Socket {
    /// Reads as `AsyncRead` does and returns how many bytes at the beginning of `buf` are initialized now.
    fn poll_read_uninit(&self, cx: &mut Context<'_>, buf: &mut [MaybeUninit<u8>]) -> Poll<io::Result<usize>>;

    /// Shuts the writing side down. `NotConnected` is no error: the peer is gone.
    fn shut(&self) -> io::Result<()>;
}

/// Implements [`Socket`] for each `$socket`, and defines [`socket`], which tells them from all other types.
macro_rules! sockets {
    ($($(#[$cfg:meta])? $socket:ty, |$this:ident| $shut:expr;)*) => {
        $($(#[$cfg])?
        impl Socket for $socket {
            #[inline]
            fn poll_read_uninit(
                &self,
                cx: &mut Context<'_>,
                buf: &mut [MaybeUninit<u8>],
            ) -> Poll<io::Result<usize>> {
                self.poll_read_uninit(cx, buf)
            }

            fn shut(&self) -> io::Result<()> {
                let $this = self;
                match $shut {
                    // The peer is gone: there is nothing left to shut down.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    result => result,
                }
            }
        })*

        /// Returns `io` as a socket, if it is one of this crate. In an optimised build the answer is a
        /// constant.
        #[inline]
        fn socket<T>(io: &T) -> Option<&dyn Socket> {
            $($(#[$cfg])?
            // SAFETY: the name `$socket` contains no lifetime.
            if let Some(socket) = unsafe { ours::cast::<T, $socket>(io) } {
                return Some(socket);
            })*
            None
        }
    };
}

sockets! {
    TcpStream, |this| this.shutdown(Shutdown::Write);
    #[cfg(unix)]
    UnixStream, |this| this.shutdown(Shutdown::Write);
    Async<std::net::TcpStream>, |this| this.get_ref().shutdown(Shutdown::Write);
    #[cfg(unix)]
    Async<std::os::unix::net::UnixStream>, |this| this.get_ref().shutdown(Shutdown::Write);
}

impl<T: AsyncRead> rt::Read for Io<T> {
    /// Reads a socket of this crate without zeroing the memory. For another stream zeroes, and reads, at most
    /// 32 KiB.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: initialized bytes stay initialized, because the memory is only written to.
        let unfilled = unsafe { buf.as_mut() };
        let read = match socket(self.get_ref()) {
            Some(socket) => ready!(socket.poll_read_uninit(cx, unfilled))?,
            None => {
                let most = unfilled.len().min(super::ZEROED);
                let zeroed = zeroed(&mut unfilled[..most]);
                let (len, read) = (zeroed.len(), ready!(self.get_pin_mut().poll_read(cx, zeroed))?);
                assert!(read <= len, "a stream says that it has read {read} bytes into a buffer of {len}");
                read
            }
        };
        // SAFETY: `read` bytes are initialized: `poll_read_uninit` promises it, and `zeroed` has written the
        // others.
        unsafe { buf.advance(read) };
        Poll::Ready(Ok(()))
    }
}

/// Zeroes memory, so that code which does not know its state may read it.
fn zeroed(memory: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    memory.fill(MaybeUninit::new(0));
    // SAFETY: all of the memory has just been written.
    unsafe { &mut *(memory as *mut [MaybeUninit<u8>] as *mut [u8]) }
}

impl<T: AsyncWrite> rt::Write for Io<T> {
    forward_writes!(get_pin_mut);

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match socket(self.get_ref()) {
            Some(socket) => Poll::Ready(socket.shut()),
            None => self.get_pin_mut().poll_close(cx),
        }
    }

    /// Returns false for a stream of another crate. Such a stream may write the first slice only: a head and
    /// its body would go out in two packets, and the second one would wait until the first is acknowledged.
    fn is_write_vectored(&self) -> bool {
        socket(self.get_ref()).is_some()
    }
}

impl<T: rt::Read> AsyncRead for Io<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.get_pin_mut().poll_read(cx, buf.unfilled()))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl<T: rt::Write> AsyncWrite for Io<T> {
    forward_writes!(get_pin_mut);

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_shutdown(cx)
    }
}
