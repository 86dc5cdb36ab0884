//! What [hyper] 1 wants of a runtime: [`Executor`], [`Timer`], and [`Io`] around a stream. With the feature `hyper`.
//!
//! | hyper asks for | give it |
//! |---|---|
//! | `rt::Read + rt::Write` | [`Io::new`] of a [`net::TcpStream`](crate::net::TcpStream), or of whatever has the traits of `futures`, such as a TLS stream |
//! | `rt::Executor` | [`Executor`], or the [`Handle`] of a runtime |
//! | `rt::Timer` | [`Timer`] |
//! | | and for an upgraded connection the traits of `futures`: [`Io::new`] of it |
//!
//! ```
//! use std::convert::Infallible;
//!
//! use http_body_util::{BodyExt, Full};
//! use hyper::body::{Bytes, Incoming};
//! use hyper::service::service_fn;
//! use hyper::{Request, Response, client, server};
//! use paceline::hyper::{Io, Timer};
//! use paceline::net::{TcpListener, TcpStream};
//! use paceline::{block_on, spawn};
//!
//! async fn shout(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
//!     let question = request.into_body().collect().await?.to_bytes();
//!     Ok(Response::new(question.to_ascii_uppercase().into()))
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
//!                     let connection = http.timer(Timer).serve_connection(Io::new(stream), service_fn(shout));
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
//!     let request = Request::post("/").header("host", "localhost").body(Full::<Bytes>::from("hello"))?;
//!     let answer = sender.send_request(request).await?.into_body().collect().await?;
//!     assert_eq!(answer.to_bytes(), "HELLO");
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

/// Spawns what hyper wants done beside a connection, as [`spawn`](crate::spawn) does: onto the runtime in whose task or
/// [`block_on`](crate::block_on()) hyper asks.
///
/// For another one, give hyper its [`Handle`].
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

/// Gives hyper our [timers](crate::Timer), for its timeouts: without one they are off, or panic.
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
        Box::pin(Asleep(ours::Timer::after(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Asleep(ours::Timer::at(deadline)))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Asleep>() {
            Some(asleep) => asleep.get_mut().0.set_at(new_deadline),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

/// A timer whose output is what hyper wants.
struct Asleep(ours::Timer);

impl Sleep for Asleep {}

impl Future for Asleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

pin_project! {
    /// Gives a stream with the traits of `futures` those of hyper, and a stream with those of hyper the ones of `futures`.
    ///
    /// | around | reads | writes of several slices | shutdown |
    /// |---|---|---|---|
    /// | [`net::TcpStream`](crate::net::TcpStream), [`UnixStream`](crate::net::unix::UnixStream), `Async<TcpStream>`, `Async<UnixStream>` | go into memory as it is | are one | shuts the writing side down |
    /// | whatever else has the traits of `futures` | go into memory that is zeroed before | are not asked for | closes |
    ///
    /// The other way round is for a connection that was upgraded:
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

    /// The stream.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// The stream.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// The stream, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut T> {
        self.project().inner
    }

    /// The stream again. Nothing is kept back that was read of it, or written.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

/// A stream socket of ours.
trait Socket {
    /// Reads as `AsyncRead` does, into memory of which so many bytes are initialised then.
    fn poll_read_uninit(&self, cx: &mut Context<'_>, buf: &mut [MaybeUninit<u8>]) -> Poll<io::Result<usize>>;

    fn shut(&self) -> io::Result<()>;
}

/// Has each `$socket` be one, and [`socket`] tell them from all else.
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
                    // The peer has gone, so it knows.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    result => result,
                }
            }
        })*

        /// What `io` is, if it is a socket of ours. In an optimised build that is known beforehand.
        #[inline]
        fn socket<T>(io: &T) -> Option<&dyn Socket> {
            $($(#[$cfg])?
            // SAFETY: its name has no lifetime in it.
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
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: what is initialised stays so: memory is only written to.
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
        // SAFETY: so many have been initialised, by the read or before it.
        unsafe { buf.advance(read) };
        Poll::Ready(Ok(()))
    }
}

/// Memory that code which does not know of its state may read.
fn zeroed(memory: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    memory.fill(MaybeUninit::new(0));
    // SAFETY: all of it has just been written.
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

    /// Of a stream that is not ours nobody knows: it may write the first slice only, and then a head and its body would go out in two
    /// packets, of which the second waits for the acknowledgement of the first.
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
