//! UDP sockets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::addresses::{ToSocketAddrs, failed, first, try_each};
use super::socket::{handle, options};
use crate::io::Async;
use crate::simulated::sockets;

/// A UDP socket.
///
/// Clones are the same socket. Any number of tasks may send and receive at once; each datagram goes to one of
/// them.
///
/// ```
/// use paceline::net::UdpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let (ours, theirs) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
///     ours.send_to(b"hello", theirs.local_addr()?).await?;
///     let mut buf = [0; 16];
///     let (len, from) = theirs.recv_from(&mut buf).await?;
///     assert_eq!((&buf[..len], from), (&b"hello"[..], ours.local_addr()?));
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct UdpSocket(Arc<Async<std::net::UdpSocket>>);

handle!(UdpSocket, std::net::UdpSocket, 0, Self);

impl UdpSocket {
    /// Creates a socket on the first address of a name that can be bound. With port 0 the system chooses the
    /// port.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`](super::resolve) and of `bind`, such as `AddrInUse`.
    pub async fn bind<A: ToSocketAddrs>(name: A) -> io::Result<Self> {
        let bind = |address| std::future::ready(Async::<std::net::UdpSocket>::bind::<SocketAddr>(address));
        try_each(name, "bind to", bind).await.map(Self::from)
    }

    /// Connects the socket to the first address of a name that can be connected to: [`send`](UdpSocket::send)
    /// sends to it, and datagrams of other senders are discarded.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`](super::resolve) and of `connect`.
    pub async fn connect<A: ToSocketAddrs>(&self, name: A) -> io::Result<()> {
        let socket = self.0.get_ref();
        let connect = |address: SocketAddr| sockets::connect(socket, address, std::net::UdpSocket::connect);
        try_each(name, "connect to", |address| std::future::ready(connect(address))).await
    }

    /// Sends a datagram to the peer of [`connect`](UdpSocket::connect).
    ///
    /// # Errors
    ///
    /// Returns the errors of `send`. `ConnectionRefused` is about an earlier datagram.
    ///
    /// # Cancel safety
    ///
    /// The datagram is sent in the same poll that returns.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.send(buf).await
    }

    /// Sends a datagram to the first address of a name.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`](super::resolve) and of `sendto`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is sent in the same poll that returns.
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], name: A) -> io::Result<usize> {
        let address = first(name).await?;
        let sent = self.0.send_to(buf, address).await;
        sent.map_err(|error| failed("send to", vec![(address, error)]))
    }

    /// Receives a datagram from the peer of [`connect`](UdpSocket::connect). Bytes that do not fit into `buf`
    /// are lost.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recv`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is received in the same poll that returns.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buf).await
    }

    /// Receives a datagram and returns its length and its sender. Bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is received in the same poll that returns.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buf).await
    }

    /// Like [`recv`](UdpSocket::recv), but leaves the datagram in the queue.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recv`.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
    }

    /// Like [`recv_from`](UdpSocket::recv_from), but leaves the datagram in the queue.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recvfrom`.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.peek_from(buf).await
    }
}

options! { UdpSocket.0:
    /// Returns the local address.
    local_addr() -> SocketAddr = sockets::local_addr;
    /// Returns the address of the peer of [`connect`](UdpSocket::connect).
    peer_addr() -> SocketAddr = sockets::peer_addr;
    /// Returns the error that the socket has stored, and clears it.
    take_error() -> Option<io::Error> = sockets::take_error;
    /// Returns whether the socket may send to broadcast addresses.
    broadcast() -> bool;
    /// Sets whether the socket may send to broadcast addresses.
    set_broadcast(broadcast: bool) -> ();
    /// Returns how many routers a packet may pass.
    ttl() -> u32;
    /// Sets how many routers a packet may pass.
    set_ttl(ttl: u32) -> ();
    /// Returns whether this machine receives the datagrams that it sends to a group.
    multicast_loop_v4() -> bool;
    /// Sets whether this machine receives the datagrams that it sends to a group.
    set_multicast_loop_v4(receives: bool) -> ();
    /// Returns how many routers a packet to a group may pass.
    multicast_ttl_v4() -> u32;
    /// Sets how many routers a packet to a group may pass.
    set_multicast_ttl_v4(ttl: u32) -> ();
    /// Returns whether this machine receives the datagrams that it sends to a group, by IPv6.
    multicast_loop_v6() -> bool;
    /// Sets whether this machine receives the datagrams that it sends to a group, by IPv6.
    set_multicast_loop_v6(receives: bool) -> ();
    /// Joins a group on the interface with the given address; `UNSPECIFIED` lets the system choose one.
    join_multicast_v4(group: &Ipv4Addr, interface: &Ipv4Addr) -> ();
    /// Leaves a group.
    leave_multicast_v4(group: &Ipv4Addr, interface: &Ipv4Addr) -> ();
    /// Joins a group on the interface with the given number; 0 lets the system choose one.
    join_multicast_v6(group: &Ipv6Addr, interface: u32) -> ();
    /// Leaves a group.
    leave_multicast_v6(group: &Ipv6Addr, interface: u32) -> ();
}
