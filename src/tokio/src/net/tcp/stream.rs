//! [`TcpStream`].

use std::io;
use std::net::{self, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use paceline::simulated_sockets as simulated;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::io::registration::{Direction, Registration};
use crate::io::{Interest, ReadBuf};
use crate::net::addr::ToSocketAddrs;
use crate::net::lookup::first;
use crate::net::streams::stream;
use crate::net::transfer::{ShortRead, as_uninit, poll_fill};
use crate::net::{sockets, sys};

/// A TCP connection.
pub struct TcpStream {
    io: Registration<net::TcpStream>,
}

stream!(TcpStream, net::TcpStream, ShortRead::Drained);

impl TcpStream {
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {
        first(addr, async |addr: SocketAddr| {
            let socket = sys::socket(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
            TcpStream::connect_by(socket, addr).await
        })
        .await
    }

    /// `socket` must be in non-blocking mode.
    pub(super) async fn connect_by(socket: Socket, addr: SocketAddr) -> io::Result<TcpStream> {
        Ok(TcpStream { io: sockets::connect(socket, &addr.into()).await? })
    }

    /// The first bytes of a peer that has just connected have often arrived.
    pub(super) fn of_accepted(stream: net::TcpStream) -> io::Result<TcpStream> {
        Ok(TcpStream { io: Registration::of_ready(stream)? })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let stream = self.io.get_ref();
        simulated::local_addr(stream).unwrap_or_else(|| stream.local_addr())
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let stream = self.io.get_ref();
        simulated::peer_addr(stream).unwrap_or_else(|| stream.peer_addr())
    }

    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        // SAFETY: `peek` returns how many bytes it has written.
        unsafe {
            poll_fill(buf, |buf| {
                let peeked = self.io.poll_io(Direction::Read, cx, |io| sys::peek(io, buf));
                peeked.map_ok(|len| (len, len))
            })
        }
    }

    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        let buf = as_uninit(buf);
        self.io.async_io(Interest::READABLE, |io| sys::peek(io, buf)).await
    }

    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.get_ref().nodelay()
    }

    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.get_ref().set_nodelay(nodelay)
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia", target_os = "cygwin"))]
    pub fn quickack(&self) -> io::Result<bool> {
        SockRef::from(self).tcp_quickack()
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia", target_os = "cygwin"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        SockRef::from(self).set_tcp_quickack(quickack)
    }

    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self).linger()
    }

    #[deprecated = "`SO_LINGER` causes the socket to block the thread on drop"]
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(dur)
    }

    pub fn set_zero_linger(&self) -> io::Result<()> {
        SockRef::from(self).set_linger(Some(Duration::ZERO))
    }

    pub fn ttl(&self) -> io::Result<u32> {
        self.io.get_ref().ttl()
    }

    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_ttl(ttl)
    }
}
