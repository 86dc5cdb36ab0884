//! [`UdpSocket`].

use std::future;
use std::io;
use std::mem::MaybeUninit;
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use paceline::simulated_sockets as simulated;
use socket2::{SockAddr, SockRef};

use super::addr::ToSocketAddrs;
use super::datagrams::datagrams;
use super::lookup::{first, resolve};
use super::sockets::{options, socket_options};
use super::sys;
#[cfg(feature = "io-util")]
use super::transfer::fill;
use super::transfer::{ShortRead, as_uninit, poll_fill};
use crate::io::registration::{Direction, Registration};
use crate::io::{Interest, ReadBuf};

/// A UDP socket.
pub struct UdpSocket {
    io: Registration<net::UdpSocket>,
}

datagrams!(UdpSocket, net::UdpSocket, SocketAddr, recv_from);

fn recv_from(socket: &net::UdpSocket, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, SocketAddr)> {
    if let Some(buf) = simulated::initialize(socket, buf) {
        return simulated::receive_from(socket, buf, false, |_, _| Err(no_sender()));
    }
    let (len, sender) = SockRef::from(socket).recv_from(buf)?;
    Ok((len, ip(sender)?))
}

fn peek_from(socket: &net::UdpSocket, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, SocketAddr)> {
    if let Some(buf) = simulated::initialize(socket, buf) {
        return simulated::receive_from(socket, buf, true, |_, _| Err(no_sender()));
    }
    let (len, sender) = SockRef::from(socket).peek_from(buf)?;
    Ok((len, ip(sender)?))
}

fn peek_sender(socket: &net::UdpSocket) -> io::Result<SocketAddr> {
    let peek = |socket: &_, _: &mut _| Ok((0, ip(SockRef::from(socket).peek_sender()?)?));
    simulated::receive_from(socket, &mut [], true, peek).map(|(_, sender)| sender)
}

fn ip(addr: SockAddr) -> io::Result<SocketAddr> {
    addr.as_socket().ok_or_else(no_sender)
}

fn no_sender() -> io::Error {
    io::Error::other("sender not available")
}

fn send_to(socket: &net::UdpSocket, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
    simulated::send_to(socket, buf, target, net::UdpSocket::send_to)
}

impl UdpSocket {
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<UdpSocket> {
        first(addr, |addr| future::ready(UdpSocket::bind_to(addr))).await
    }

    fn bind_to(addr: SocketAddr) -> io::Result<UdpSocket> {
        let bind = |addr| {
            let socket = net::UdpSocket::bind(addr)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        UdpSocket::new(simulated::datagrams(addr, bind)?)
    }

    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        let socket = self.io.get_ref();
        let connect = |addr: SocketAddr| simulated::connect(socket, addr, net::UdpSocket::connect);
        first(addr, |addr| future::ready(connect(addr))).await
    }

    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        let Some(target) = resolve(addr).await?.next() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to"));
        };
        self.io.async_io(Interest::WRITABLE, |io| send_to(io, buf, target)).await
    }

    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.io.poll_io(Direction::Write, cx, |io| send_to(io, buf, target))
    }

    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |io| send_to(io, buf, target))
    }

    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        let buf = as_uninit(buf);
        self.io.async_io(RECEIVED, |io| sys::peek(io, buf)).await
    }

    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let peek = |buf: &mut [MaybeUninit<u8>]| {
            self.io.poll_io(Direction::Read, cx, |io| Ok((sys::peek(io, buf)?, ())))
        };
        // SAFETY: `peek` returns how many bytes it has written.
        unsafe { poll_fill(buf, peek) }
    }

    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        let buf = as_uninit(buf);
        self.io.try_io(RECEIVED, |io| sys::peek(io, buf))
    }

    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let buf = as_uninit(buf);
        self.io.async_io(RECEIVED, |io| peek_from(io, buf)).await
    }

    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let peek =
            |buf: &mut [MaybeUninit<u8>]| self.io.poll_io(Direction::Read, cx, |io| peek_from(io, buf));
        // SAFETY: `peek` returns how many bytes it has written.
        unsafe { poll_fill(buf, peek) }
    }

    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let buf = as_uninit(buf);
        self.io.try_io(RECEIVED, |io| peek_from(io, buf))
    }

    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.async_io(RECEIVED, peek_sender).await
    }

    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_io(Direction::Read, cx, peek_sender)
    }

    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.try_io(RECEIVED, peek_sender)
    }

    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.get_ref().join_multicast_v4(&multiaddr, &interface)
    }

    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.get_ref().join_multicast_v6(multiaddr, interface)
    }

    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.get_ref().leave_multicast_v4(&multiaddr, &interface)
    }

    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.get_ref().leave_multicast_v6(multiaddr, interface)
    }
}

options! {
    UdpSocket, |this| this.io.get_ref();
    local_addr() -> SocketAddr = local_addr, simulated::local_addr;
    peer_addr() -> SocketAddr = peer_addr, simulated::peer_addr;
    broadcast() -> bool = broadcast;
    set_broadcast(on: bool) -> () = set_broadcast;
    multicast_loop_v4() -> bool = multicast_loop_v4;
    set_multicast_loop_v4(on: bool) -> () = set_multicast_loop_v4;
    multicast_ttl_v4() -> u32 = multicast_ttl_v4;
    set_multicast_ttl_v4(ttl: u32) -> () = set_multicast_ttl_v4;
    multicast_loop_v6() -> bool = multicast_loop_v6;
    set_multicast_loop_v6(on: bool) -> () = set_multicast_loop_v6;
    ttl() -> u32 = ttl;
    set_ttl(ttl: u32) -> () = set_ttl;
}

socket_options!(UdpSocket, |this| SockRef::from(this));
