//! The operations that TCP and Unix streams share, and their halves.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::io::{AsyncRead, AsyncWrite};

use super::tcp::TcpStream;
#[cfg(unix)]
use super::unix::UnixStream;
use crate::simulated::sockets;

/// The operations of a stream that its halves need. A clone is the same stream.
pub trait Stream: Clone {
    /// Shuts down one direction or both, for all clones.
    fn shut(&self, how: Shutdown) -> io::Result<()>;
    /// Returns whether the two are clones of one stream.
    fn is_same(&self, other: &Self) -> bool;
}

/// The reading half of a stream, borrowed from it: see [`TcpStream::split`](TcpStream::split).
#[derive(Clone, Copy, Debug)]
pub struct ReadHalf<'a, S = TcpStream>(&'a S);

/// The writing half of a stream, borrowed from it: see [`TcpStream::split`](TcpStream::split). Closing the
/// half shuts the writing side down; dropping the half does nothing.
#[derive(Clone, Copy, Debug)]
pub struct WriteHalf<'a, S = TcpStream>(&'a S);

/// The reading half of a stream: see [`TcpStream::into_split`](TcpStream::into_split).
#[derive(Debug)]
pub struct OwnedReadHalf<S = TcpStream>(S);

/// The writing half of a stream: see [`TcpStream::into_split`](TcpStream::into_split).
///
/// Dropping the half shuts the writing side down, so that the peer reads to the end even if the other half
/// still exists. [`forget`](OwnedWriteHalf::forget) leaves the writing side open.
#[derive(Debug)]
pub struct OwnedWriteHalf<S: Stream = TcpStream>(Option<S>);

impl<S> AsRef<S> for ReadHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for WriteHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for OwnedReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S: Stream> AsRef<S> for OwnedWriteHalf<S> {
    fn as_ref(&self) -> &S {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<S: Stream> OwnedReadHalf<S> {
    /// Puts the stream together again, if both halves belong to the same one.
    ///
    /// # Errors
    ///
    /// Returns the halves if they belong to two streams.
    pub fn reunite(self, other: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !self.0.is_same(other.as_ref()) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        Ok(self.0)
    }
}

impl<S: Stream> OwnedWriteHalf<S> {
    /// Drops the half, and leaves the writing side open until the other half is dropped, too.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl<S: Stream> Drop for OwnedWriteHalf<S> {
    /// Shuts the writing side down, and ignores an error. Does nothing after
    /// [`forget`](OwnedWriteHalf::forget).
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            // A destructor cannot return the error, and no caller could act on it.
            let _ = stream.shut(Shutdown::Write);
        }
    }
}

/// An error: two halves that do not belong to the same stream.
#[derive(Debug)]
pub struct ReuniteError<S: Stream = TcpStream>(
    /// The reading half.
    pub OwnedReadHalf<S>,
    /// The writing half.
    pub OwnedWriteHalf<S>,
);

impl<S: Stream> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these are halves of two streams")
    }
}

impl<S: Stream + fmt::Debug> Error for ReuniteError<S> {}

/// Shuts the writing side down. `NotConnected` is no error: the peer is gone.
pub(super) fn close(stream: &impl Stream) -> io::Result<()> {
    match stream.shut(Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

/// Implements `AsyncRead` for `$handle` by that of the reference `$io`, which is taken out of `$this`, a
/// `&mut` to the handle.
macro_rules! reads {
    ([$($generics:tt)*] $handle:ty, [$($bound:tt)*], |$this:ident| $io:expr) => {
        impl<$($generics)*> AsyncRead for $handle
        where
            $($bound)*
        {
            #[inline]
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                Pin::new(&mut $io).poll_read(cx, buf)
            }

            #[inline]
            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [io::IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                Pin::new(&mut $io).poll_read_vectored(cx, bufs)
            }
        }
    };
}

/// Implements `AsyncWrite` for `$handle` by that of `$io`. Closing shuts `$stream` down. Flushing does
/// nothing: a socket has no buffer of its own.
macro_rules! writes {
    ([$($generics:tt)*] $handle:ty, [$($bound:tt)*], |$this:ident| $io:expr, $stream:expr) => {
        impl<$($generics)*> AsyncWrite for $handle
        where
            $($bound)*
        {
            #[inline]
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                Pin::new(&mut $io).poll_write(cx, buf)
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                Pin::new(&mut $io).poll_write_vectored(cx, bufs)
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Shuts the writing side down, without waiting. `NotConnected` is no error.
            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = self.get_mut();
                Poll::Ready(close($stream))
            }
        }
    };
}

/// Implements what the stream types have in common.
macro_rules! stream {
    ($stream:ident) => {
        reads!([] $stream, [], |this| &*this.0);
        reads!([] &$stream, [], |this| &*this.0);
        writes!([] $stream, [], |this| &*this.0, this);
        writes!([] &$stream, [], |this| &*this.0, *this);

        impl Stream for $stream {
            fn shut(&self, how: Shutdown) -> io::Result<()> {
                self.shutdown(how)
            }

            fn is_same(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0)
            }
        }

        #[cfg(any(feature = "hyper", feature = "tokio-io"))]
        impl $stream {
            /// Reads into memory that may be uninitialized. Returns how many bytes at the beginning of `buf`
            /// are initialized now.
            #[inline]
            pub(crate) fn poll_read_uninit(
                &self,
                cx: &mut Context<'_>,
                buf: &mut [std::mem::MaybeUninit<u8>],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_read_uninit(cx, buf)
            }
        }

        impl $stream {
            /// Waits until there are bytes to read, or until the peer has ended its side. The wake-up may be
            /// spurious: a read afterwards may still have to wait.
            ///
            /// # Errors
            ///
            /// Returns the errors of the reactor.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no bytes.
            pub async fn readable(&self) -> io::Result<()> {
                self.0.readable().await
            }

            /// Waits until there is room to write. The wake-up may be spurious: a write afterwards may still
            /// have to wait.
            ///
            /// # Errors
            ///
            /// Returns the errors of the reactor.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no bytes.
            pub async fn writable(&self) -> io::Result<()> {
                self.0.writable().await
            }

            /// Shuts down one direction or both, for all clones. After shutting down the writing side the
            /// peer reads to the end; after the reading side, reads here return the end of the stream.
            ///
            /// # Errors
            ///
            /// Returns the errors of `shutdown`, such as `NotConnected`.
            pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
                sockets::shutdown(self.0.get_ref(), how, |socket, how| socket.shutdown(how))
            }

            /// Returns the error that the socket has stored, and clears it.
            ///
            /// # Errors
            ///
            /// Returns the errors of `getsockopt`.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                let socket = self.0.get_ref();
                sockets::take_error(socket).unwrap_or_else(|| socket.take_error())
            }

            /// Borrows the stream as two halves, at no cost.
            pub fn split(&self) -> (ReadHalf<'_, Self>, WriteHalf<'_, Self>) {
                (ReadHalf(self), WriteHalf(self))
            }

            /// Splits the stream into two halves that are independent. Dropping the writing half shuts that
            /// side down: see [`OwnedWriteHalf`].
            pub fn into_split(self) -> (OwnedReadHalf<Self>, OwnedWriteHalf<Self>) {
                (OwnedReadHalf(self.clone()), OwnedWriteHalf(Some(self)))
            }
        }
    };
}

stream!(TcpStream);
#[cfg(unix)]
stream!(UnixStream);

reads!(['a, S] ReadHalf<'a, S>, [for<'s> &'s S: AsyncRead], |this| this.0);
reads!([S: Unpin] OwnedReadHalf<S>, [for<'s> &'s S: AsyncRead], |this| &this.0);
writes!(['a, S: Stream] WriteHalf<'a, S>, [for<'s> &'s S: AsyncWrite], |this| this.0, this.0);
writes!([S: Stream + Unpin] OwnedWriteHalf<S>, [for<'s> &'s S: AsyncWrite], |this| this.as_ref(), this.as_ref());
