//! Adapters between the I/O traits of tokio and those of `futures`. Requires the feature `tokio-io`.
//!
//! | I have | a crate asks for | give it |
//! |---|---|---|
//! | a stream of [`net`](crate::net), or a half of one | tokio's traits | the stream |
//! | an `Async<TcpStream>` | tokio's traits | `net::TcpStream::from` of it |
//! | another stream with the traits of `futures` | tokio's traits | [`ForTokio::new`] of it |
//! | a stream with tokio's traits | those of `futures` | [`ForFutures::new`] of it |
//!
//! The streams of [`net`](crate::net) implement tokio's traits. Do not wrap an `Async<TcpStream>` in
//! [`ForTokio`]: its shutdown would only flush, as closing an `Async<TcpStream>` does. Other streams are, for
//! example, a TLS stream and an [`Unblock`](crate::Unblock).
//!
//! Tokio's shutdown is the close of `futures`. None of this needs a runtime. For crates that need tokio's
//! runtime, see the feature `tokio`.
//!
//! # Ambiguous methods
//!
//! If both `futures::AsyncReadExt` (which is in [`prelude`](crate::prelude)) and `tokio::io::AsyncReadExt`
//! are in scope, `stream.read(..)` is ambiguous for a type that implements both traits, and the compiler says
//! so (E0034). Import only one of them. If both are needed, call the rarer one by its path:
//!
//! ```
//! use paceline::net::unix::UnixStream;
//! use paceline::prelude::*;
//!
//! # fn main() -> std::io::Result<()> {
//! # paceline::block_on(async {
//! let (mut ours, mut theirs) = UnixStream::pair()?;
//! ours.write_all(b"hello").await?;                                 // futures'
//! let mut buf = [0; 5];
//! tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut buf).await?; // tokio's
//! assert_eq!(&buf, b"hello");
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! A library that calls such methods on paceline's streams should import one set of traits in each module,
//! even if it does not enable this feature: another crate of the same program may enable it.

use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io as futures_io;
use pin_project_lite::pin_project;
use tokio::io as tokio_io;
use tokio::io::ReadBuf;

mod sockets;

pin_project! {
    /// Implements tokio's traits for a stream with the traits of `futures`.
    ///
    /// Reading into uninitialized memory zeroes it first, as far as necessary. Initialized memory, such as
    /// that of `tokio::io::copy` and `BufReader`, is used as it is.
    ///
    /// ```
    /// use paceline::tokio_io::ForTokio;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # paceline::block_on(async {
    /// let mut io = ForTokio::new(futures::io::Cursor::new(b"hello ".to_vec()));
    /// let mut text = String::new();
    /// io.read_to_string(&mut text).await?;
    /// io.write_all(b"world").await?;
    /// io.shutdown().await?;
    /// assert_eq!((&*text, io.into_inner().into_inner()), ("hello ", b"hello world".to_vec()));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[derive(Clone, Debug)]
    pub struct ForTokio<T> {
        #[pin]
        inner: T,
        // The seek that was begun and is not complete.
        seeks: Option<SeekFrom>,
    }
}

pin_project! {
    /// Implements the traits of `futures` for a stream with tokio's traits.
    ///
    /// ```
    /// use paceline::prelude::*;
    /// use paceline::tokio_io::ForFutures;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # paceline::block_on(async {
    /// let (ours, theirs) = tokio::io::duplex(64);
    /// let (mut ours, mut theirs) = (ForFutures::new(ours), ForFutures::new(theirs));
    /// ours.write_all(b"hello").await?;
    /// ours.close().await?;
    /// let mut text = String::new();
    /// theirs.read_to_string(&mut text).await?;
    /// assert_eq!(text, "hello");
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[derive(Clone, Debug)]
    pub struct ForFutures<T> {
        #[pin]
        inner: T,
        // The seek that was begun and is not complete.
        seeks: Option<SeekFrom>,
    }
}

/// Implements the constructor and the accessors of a wrapper.
macro_rules! wrapper {
    ($wrapper:ident) => {
        impl<T> $wrapper<T> {
            /// Wraps a stream.
            pub const fn new(inner: T) -> Self {
                Self { inner, seeks: None }
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
    };
}

wrapper!(ForTokio);
wrapper!(ForFutures);

impl<T: futures_io::AsyncRead> tokio_io::AsyncRead for ForTokio<T> {
    /// Reads at most 32 KiB, for which this zeroes what is not initialized; reads more only if more is
    /// initialized.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let ready = buf.initialized().len() - buf.filled().len();
        let len = buf.remaining().min(ready.max(super::ZEROED));
        let read = ready!(self.get_pin_mut().poll_read(cx, buf.initialize_unfilled_to(len)))?;
        assert!(read <= len, "a stream says that it has read {read} bytes into a buffer of {len}");
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: futures_io::AsyncWrite> tokio_io::AsyncWrite for ForTokio<T> {
    forward_writes!(get_pin_mut);

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_close(cx)
    }
}

impl<T: futures_io::AsyncBufRead> tokio_io::AsyncBufRead for ForTokio<T> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_pin_mut().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_pin_mut().consume(amount);
    }
}

impl<T: futures_io::AsyncSeek> tokio_io::AsyncSeek for ForTokio<T> {
    /// Only notes the position: `poll_complete` seeks.
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        *self.project().seeks = Some(position);
        Ok(())
    }

    /// Seeks, if a seek was started; otherwise returns zero, and does not ask the stream.
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.project();
        // Tokio calls this before a seek as well, only to complete an earlier one.
        let Some(position) = *this.seeks else { return Poll::Ready(Ok(0)) };
        let result = ready!(this.inner.poll_seek(cx, position));
        *this.seeks = None;
        Poll::Ready(result)
    }
}

impl<T> ForFutures<T> {
    /// Returns the stream for an operation that moves its position: a seek that was abandoned is not in
    /// progress any more.
    fn abandon_seek(self: Pin<&mut Self>) -> Pin<&mut T> {
        let this = self.project();
        *this.seeks = None;
        this.inner
    }
}

impl<T: tokio_io::AsyncRead> futures_io::AsyncRead for ForFutures<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.abandon_seek().poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl<T: tokio_io::AsyncWrite> futures_io::AsyncWrite for ForFutures<T> {
    forward_writes!(abandon_seek);

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_shutdown(cx)
    }
}

impl<T: tokio_io::AsyncBufRead> futures_io::AsyncBufRead for ForFutures<T> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.abandon_seek().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.abandon_seek().consume(amount);
    }
}

impl<T: tokio_io::AsyncSeek> futures_io::AsyncSeek for ForFutures<T> {
    /// Begins a seek with the first poll for this position, after an earlier one to elsewhere is complete.
    fn poll_seek(self: Pin<&mut Self>, cx: &mut Context<'_>, position: SeekFrom) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        if *this.seeks != Some(position) {
            // An earlier seek that was abandoned has to complete first.
            ready!(this.inner.as_mut().poll_complete(cx))?;
            this.inner.as_mut().start_seek(position)?;
            *this.seeks = Some(position);
        }
        let result = ready!(this.inner.poll_complete(cx));
        *this.seeks = None;
        Poll::Ready(result)
    }
}
