//! [`TcpListener`].

use std::future;
use std::io;
use std::net::{self, SocketAddr};
use std::task::{Context, Poll, ready};

use paceline::simulated_sockets as simulated;

use super::stream::TcpStream;
use crate::io::Interest;
use crate::io::registration::{Direction, Registration};
use crate::net::addr::ToSocketAddrs;
use crate::net::lookup::first;
use crate::net::sockets::socket;
use crate::net::sys;

/// A TCP socket that accepts connections.
pub struct TcpListener {
    io: Registration<net::TcpListener>,
}

socket!(TcpListener, net::TcpListener);

impl TcpListener {
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<TcpListener> {
        first(addr, |addr| future::ready(TcpListener::bind_to(addr))).await
    }

    fn bind_to(addr: SocketAddr) -> io::Result<TcpListener> {
        let bind = |addr| {
            let listener = net::TcpListener::bind(addr)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        TcpListener::new(simulated::listener(addr, simulated::STD_BACKLOG, bind)?)
    }

    /// `listener` must be in non-blocking mode.
    pub(super) fn of(listener: socket2::Socket) -> io::Result<TcpListener> {
        TcpListener::new(listener.into())
    }

    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.io.async_io(Interest::READABLE, sys::accept).await?;
        Ok((TcpStream::of_accepted(stream)?, peer))
    }

    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let (stream, peer) = ready!(self.io.poll_io(Direction::Read, cx, sys::accept))?;
        Poll::Ready(Ok((TcpStream::of_accepted(stream)?, peer)))
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let listener = self.io.get_ref();
        simulated::local_addr(listener).unwrap_or_else(|| listener.local_addr())
    }

    pub fn ttl(&self) -> io::Result<u32> {
        self.io.get_ref().ttl()
    }

    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_ttl(ttl)
    }
}
