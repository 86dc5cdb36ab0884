//! The common part of UDP and Unix datagram sockets.

/// Sending to a peer, and receiving: `$recv_from` returns the sender of `$socket` as an `$addr`.
macro_rules! datagrams {
    ($socket:ident, $std:ty, $addr:ty, $recv_from:path) => {
        $crate::net::sockets::socket!($socket, $std);
        $crate::net::sockets::readiness!($socket, poll_recv_ready, poll_send_ready);

        /// A receive also returns an error that arrived meanwhile.
        const RECEIVED: Interest = Interest::READABLE.add(Interest::ERROR);

        impl $socket {
            pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
                self.io.async_io(Interest::WRITABLE, |io| sys::send(io, buf)).await
            }

            pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.io.poll_io(Direction::Write, cx, |io| sys::send(io, buf))
            }

            pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
                self.io.try_io(Interest::WRITABLE, |io| sys::send(io, buf))
            }

            pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
                let buf = as_uninit(buf);
                self.io.async_io(RECEIVED, |io| sys::recv(io, buf)).await
            }

            pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                self.io.poll_recv(cx, buf, ShortRead::Anything)
            }

            pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
                let buf = as_uninit(buf);
                self.io.try_io(RECEIVED, |io| sys::recv(io, buf))
            }

            pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, $addr)> {
                let buf = as_uninit(buf);
                self.io.async_io(RECEIVED, |io| $recv_from(io, buf)).await
            }

            pub fn poll_recv_from(
                &self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<$addr>> {
                let read = |buf: &mut [MaybeUninit<u8>]| {
                    self.io.poll_io(Direction::Read, cx, |io| $recv_from(io, buf))
                };
                // SAFETY: `read` returns how many bytes it has written.
                unsafe { poll_fill(buf, read) }
            }

            pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, $addr)> {
                let buf = as_uninit(buf);
                self.io.try_io(RECEIVED, |io| $recv_from(io, buf))
            }
        }

        #[cfg(feature = "io-util")]
        impl $socket {
            pub async fn recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                // SAFETY: `recv` returns how many bytes it has written.
                let read = |io: &$std| unsafe { fill(buf, |buf| Ok((sys::recv(io, buf)?, ()))) };
                Ok(self.io.async_io(RECEIVED, read).await?.0)
            }

            pub fn try_recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                // SAFETY: `recv` returns how many bytes it has written.
                let read = |io: &$std| unsafe { fill(buf, |buf| Ok((sys::recv(io, buf)?, ()))) };
                Ok(self.io.try_io(RECEIVED, read)?.0)
            }

            pub async fn recv_buf_from<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<(usize, $addr)> {
                // SAFETY: `$recv_from` returns how many bytes it has written.
                self.io.async_io(RECEIVED, |io| unsafe { fill(buf, |buf| $recv_from(io, buf)) }).await
            }

            pub fn try_recv_buf_from<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<(usize, $addr)> {
                // SAFETY: `$recv_from` returns how many bytes it has written.
                self.io.try_io(RECEIVED, |io| unsafe { fill(buf, |buf| $recv_from(io, buf)) })
            }
        }
    };
}

pub(super) use datagrams;
