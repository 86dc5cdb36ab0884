//! Tokio's `AsyncRead` and `AsyncWrite` for what has those of `futures`, and the other way round. With the feature `tokio-io`.
//!
//! | I have | a crate asks for | give it |
//! |---|---|---|
//! | a stream of [`net`](crate::net), or a half of one | tokio's traits | the stream: it has them |
//! | an `Async<TcpStream>` | tokio's traits | `net::TcpStream::from` of it: by [`ForTokio`] a shutdown would only flush, as closing it does |
//! | something else with the traits of `futures`: a TLS stream, [`Unblock`](crate::Unblock) | tokio's traits | [`ForTokio::new`] of it |
//! | something with tokio's traits | those of `futures` | [`ForFutures::new`] of it |
//!
//! Shutting down in tokio's words is closing in those of `futures`. No runtime is needed for any of this; for crates that need
//! tokio's, see the feature `tokio`.
//!
//! # Which `read` is meant
//!
//! Where both `futures::AsyncReadExt` (which is in [`prelude`](crate::prelude)) and `tokio::io::AsyncReadExt` are in scope, `stream.read(..)` of a
//! type that has both traits is ambiguous, and the compiler says so (E0034). Import the one or the other; where both are needed, call the
//! rarer one by its path:
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
//! A library that calls such methods of paceline's streams should import one set of traits in a module, whether it has asked for this feature
//! or not: another crate of the same program may have.

use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io as futures_io;
use pin_project_lite::pin_project;
use tokio::io as tokio_io;
use tokio::io::ReadBuf;

mod sockets;

pin_project! {
    /// Gives what has the traits of `futures` those of tokio.
    ///
    /// Reading into memory that was not written before zeroes it first, as far as it is needed; memory that was, as that of
    /// `tokio::io::copy` and `BufReader`, is taken as it is.
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
        seeks: Option<SeekFrom>,
    }
}

pin_project! {
    /// Gives what has the traits of tokio those of `futures`.
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
        seeks: Option<SeekFrom>,
    }
}

macro_rules! wrapper {
    ($wrapper:ident) => {
        impl<T> $wrapper<T> {
            /// Wraps a stream.
            pub const fn new(inner: T) -> Self {
                Self { inner, seeks: None }
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
    };
}

wrapper!(ForTokio);
wrapper!(ForFutures);

impl<T: futures_io::AsyncRead> tokio_io::AsyncRead for ForTokio<T> {
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
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        *self.project().seeks = Some(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.project();
        // Tokio asks for this before a seek as well, and then wants no more than the end of the one before.
        let Some(position) = *this.seeks else { return Poll::Ready(Ok(0)) };
        let result = ready!(this.inner.poll_seek(cx, position));
        *this.seeks = None;
        Poll::Ready(result)
    }
}

impl<T> ForFutures<T> {
    /// The stream, for what moves its position: a seek that was given up is no more in progress.
    fn moves(self: Pin<&mut Self>) -> Pin<&mut T> {
        let this = self.project();
        *this.seeks = None;
        this.inner
    }
}

impl<T: tokio_io::AsyncRead> futures_io::AsyncRead for ForFutures<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.moves().poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl<T: tokio_io::AsyncWrite> futures_io::AsyncWrite for ForFutures<T> {
    forward_writes!(moves);

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_shutdown(cx)
    }
}

impl<T: tokio_io::AsyncBufRead> futures_io::AsyncBufRead for ForFutures<T> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.moves().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.moves().consume(amount);
    }
}

impl<T: tokio_io::AsyncSeek> futures_io::AsyncSeek for ForFutures<T> {
    fn poll_seek(self: Pin<&mut Self>, cx: &mut Context<'_>, position: SeekFrom) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        if *this.seeks != Some(position) {
            // An earlier one that nobody waited for has to end first.
            ready!(this.inner.as_mut().poll_complete(cx))?;
            this.inner.as_mut().start_seek(position)?;
            *this.seeks = Some(position);
        }
        let result = ready!(this.inner.poll_complete(cx));
        *this.seeks = None;
        Poll::Ready(result)
    }
}
