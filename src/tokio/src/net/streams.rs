//! The common part of TCP and Unix streams.

/// The methods and traits of `$stream`, which is a `Registration<$std>`; `$short` is the meaning of a short
/// read.
macro_rules! stream {
    ($stream:ident, $std:ty, $short:expr) => {
        $crate::net::sockets::socket!($stream, $std);
        $crate::net::sockets::readiness!($stream, poll_read_ready, poll_write_ready);

        impl $stream {
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                let buf = $crate::net::transfer::as_uninit(buf);
                self.io.try_io(Interest::READABLE, |io| sys::recv(io, buf))
            }

            pub fn try_read_vectored(&self, bufs: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
                self.io.try_io(Interest::READABLE, |mut io| {
                    let simulated = paceline::simulated_sockets::receive_vectored(io, bufs);
                    simulated.unwrap_or_else(|| io::Read::read_vectored(&mut io, bufs))
                })
            }

            #[cfg(feature = "io-util")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                // SAFETY: `recv` returns how many bytes it has written.
                let read = |io: &$std| unsafe {
                    $crate::net::transfer::fill(buf, |buf| Ok((sys::recv(io, buf)?, ())))
                };
                Ok(self.io.try_io(Interest::READABLE, read)?.0)
            }

            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.io.try_io(Interest::WRITABLE, |io| sys::send(io, buf))
            }

            pub fn try_write_vectored(&self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
                self.io.try_io(Interest::WRITABLE, |io| sys::send_vectored(io, bufs))
            }

            /// Shuts the write side down. An error of a closed connection is ignored.
            pub(super) fn close(&self) -> io::Result<()> {
                let (socket, how) = (self.io.get_ref(), std::net::Shutdown::Write);
                match paceline::simulated_sockets::shutdown(socket, how, <$std>::shutdown) {
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    result => result,
                }
            }

            #[inline]
            pub(super) fn poll_recv(
                &self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.io.poll_recv(cx, buf, $short)
            }

            #[inline]
            pub(super) fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.io.poll_send(cx, buf)
            }

            pub(super) fn poll_send_vectored(
                &self,
                cx: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.io.poll_send_vectored(cx, bufs)
            }
        }

        impl AsRef<Self> for $stream {
            fn as_ref(&self) -> &Self {
                self
            }
        }

        $crate::net::streams::reads!($stream, |this| this);
        $crate::net::streams::writes!($stream, |this| this, |this| this.close());
    };
}

/// Makes `$handle` read as `$stream` does, which belongs to `$this`.
macro_rules! reads {
    ($handle:ty, |$this:ident| $stream:expr) => {
        impl crate::io::AsyncRead for $handle {
            #[inline]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut crate::io::ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let $this = &*self;
                $stream.poll_recv(cx, buf)
            }
        }
    };
}

/// Makes `$handle` write as `$stream` does, and end by `$close`. A socket has no buffer to flush.
macro_rules! writes {
    ($handle:ty, |$this:ident| $stream:expr, |$closing:ident| $close:expr) => {
        impl crate::io::AsyncWrite for $handle {
            #[inline]
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                let $this = &*self;
                $stream.poll_send(cx, buf)
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                $stream.poll_send_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $closing = self.get_mut();
                Poll::Ready($close)
            }
        }
    };
}

pub(super) use {reads, stream, writes};
