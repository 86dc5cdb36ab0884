//! Tokio's traits for the streams of `net` and their halves, which read directly into uninitialized memory.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io::AsyncWrite as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(unix)]
use crate::net::unix::UnixStream;
use crate::net::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, TcpStream, WriteHalf};

/// Implements tokio's `AsyncRead` for `$handle` by that of `$stream`, the stream that belongs to `$this`.
macro_rules! reads {
    ($($handle:ty, |$this:ident| $stream:expr;)*) => {$(
        impl AsyncRead for $handle {
            #[inline]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let $this = self.get_mut();
                // SAFETY: initialized bytes stay initialized, because the memory is only written to.
                let unfilled = unsafe { buf.unfilled_mut() };
                let read = ready!($stream.poll_read_uninit(cx, unfilled))?;
                // SAFETY: `poll_read_uninit` promises that `read` bytes are initialized.
                unsafe { buf.assume_init(read) };
                buf.advance(read);
                Poll::Ready(Ok(()))
            }
        }
    )*};
}

/// Implements tokio's `AsyncWrite` for `$handle` by that of `futures`.
macro_rules! writes {
    ($($handle:ty;)*) => {$(
        impl AsyncWrite for $handle {
            #[inline]
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                futures::io::AsyncWrite::poll_write(self, cx, buf)
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                futures::io::AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_close(cx)
            }
        }
    )*};
}

macro_rules! stream {
    ($stream:ty) => {
        reads! {
            $stream, |this| this;
            &$stream, |this| this;
            ReadHalf<'_, $stream>, |this| this.as_ref();
            OwnedReadHalf<$stream>, |this| this.as_ref();
        }
        writes! {
            $stream;
            &$stream;
            WriteHalf<'_, $stream>;
            OwnedWriteHalf<$stream>;
        }
    };
}

stream!(TcpStream);
#[cfg(unix)]
stream!(UnixStream);
