//! What TCP and Unix streams have in common, and their halves.

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

/// What a stream is to its halves. A clone is the same stream.
pub trait Stream: Clone {
    fn shut(&self, how: Shutdown) -> io::Result<()>;
    fn is_same(&self, other: &Self) -> bool;
}

/// The half of a stream that reads, borrowed from it: see [`TcpStream::split`](TcpStream::split).
#[derive(Clone, Copy, Debug)]
pub struct ReadHalf<'a, S = TcpStream>(&'a S);

/// The half of a stream that writes, borrowed from it: see [`TcpStream::split`](TcpStream::split). Closing it shuts that side down;
/// dropping it does nothing.
#[derive(Clone, Copy, Debug)]
pub struct WriteHalf<'a, S = TcpStream>(&'a S);

/// The half of a stream that reads: see [`TcpStream::into_split`](TcpStream::into_split).
#[derive(Debug)]
pub struct OwnedReadHalf<S = TcpStream>(S);

/// The half of a stream that writes: see [`TcpStream::into_split`](TcpStream::into_split).
///
/// Dropping it shuts that side down, so that the peer reads to the end although the other half is still there;
/// [`forget`](OwnedWriteHalf::forget) leaves it open.
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
    /// The stream again, if these are its halves.
    ///
    /// # Errors
    ///
    /// The halves, if they are those of two streams.
    pub fn reunite(self, other: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !self.0.is_same(other.as_ref()) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        Ok(self.0)
    }
}

impl<S: Stream> OwnedWriteHalf<S> {
    /// Drops it, and leaves its side open until the other half is dropped, too.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl<S: Stream> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            // There is nobody to tell, and nothing that could be done.
            let _ = stream.shut(Shutdown::Write);
        }
    }
}

/// Two halves that are not those of one stream.
#[derive(Debug)]
pub struct ReuniteError<S: Stream = TcpStream>(
    /// The half that reads.
    pub OwnedReadHalf<S>,
    /// The half that writes.
    pub OwnedWriteHalf<S>,
);

impl<S: Stream> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these are halves of two streams")
    }
}

impl<S: Stream + fmt::Debug> Error for ReuniteError<S> {}

/// Shuts the writing side down. A peer that has gone already knows.
pub(super) fn close(stream: &impl Stream) -> io::Result<()> {
    match stream.shut(Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

/// Has a handle read as `$io` does, which is a reference that does, out of `$this`, a `&mut` to the handle.
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

/// Has a handle write as `$io` does, and shut `$stream` down when it is closed. A socket keeps nothing back that could be flushed.
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

            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = self.get_mut();
                Poll::Ready(close($stream))
            }
        }
    };
}

/// What the streams have in common.
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
            /// As that of `Async`.
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
            /// Waits until there is something to read, or the peer has ended. It may be by chance: a read may wait nevertheless.
            ///
            /// # Errors
            ///
            /// Those of the reactor.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses nothing.
            pub async fn readable(&self) -> io::Result<()> {
                self.0.readable().await
            }

            /// Waits until there is room to write. It may be by chance: a write may wait nevertheless.
            ///
            /// # Errors
            ///
            /// Those of the reactor.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses nothing.
            pub async fn writable(&self) -> io::Result<()> {
                self.0.writable().await
            }

            /// Shuts one direction down, or both, for all clones: the peer reads to the end; what is read here has ended.
            ///
            /// # Errors
            ///
            /// Those of `shutdown`, such as `NotConnected`.
            pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
                self.0.get_ref().shutdown(how)
            }

            /// The error that the socket has kept, which this takes away.
            ///
            /// # Errors
            ///
            /// Those of `getsockopt`.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.0.get_ref().take_error()
            }

            /// Two halves, for as long as this is borrowed. They cost nothing.
            pub fn split(&self) -> (ReadHalf<'_, Self>, WriteHalf<'_, Self>) {
                (ReadHalf(self), WriteHalf(self))
            }

            /// Two halves that go their own ways. Dropping the one that writes shuts that side down; see
            /// [`OwnedWriteHalf`].
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

/// Has `$handle`, whose first field is an `Arc<Async<$std>>` of which `$new` makes one, become what it is built on and be made of it, and lend
/// out its descriptor.
macro_rules! handle {
    ($handle:ident, $std:ty, $field:tt, $new:expr) => {
        impl From<Async<$std>> for $handle {
            fn from(io: Async<$std>) -> Self {
                Arc::new(io).into()
            }
        }

        impl From<Arc<Async<$std>>> for $handle {
            fn from(io: Arc<Async<$std>>) -> Self {
                $new(io)
            }
        }

        impl From<$handle> for Arc<Async<$std>> {
            fn from(handle: $handle) -> Self {
                handle.$field
            }
        }

        /// In non-blocking mode from then on, and with the reactor of the current runtime.
        impl TryFrom<$std> for $handle {
            type Error = io::Error;

            fn try_from(io: $std) -> io::Result<Self> {
                Async::new(io).map(Self::from)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $handle {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$field.get_ref().as_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $handle {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.$field.get_ref().as_raw_fd()
            }
        }

        #[cfg(unix)]
        impl TryFrom<std::os::fd::OwnedFd> for $handle {
            type Error = io::Error;

            fn try_from(fd: std::os::fd::OwnedFd) -> io::Result<Self> {
                Self::try_from(<$std>::from(fd))
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $handle {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                self.$field.get_ref().as_socket()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $handle {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                self.$field.get_ref().as_raw_socket()
            }
        }
    };
}

/// Options of `$handle`'s socket, which is in `$field`, as the standard library has them.
macro_rules! options {
    ($handle:ident.$field:tt: $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        impl $handle {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// The system's.
                pub fn $name(&self $(, $arg: $type)*) -> io::Result<$result> {
                    self.$field.get_ref().$name($($arg),*)
                }
            )*
        }
    };
}

pub(super) use {handle, options};
