//! Platforms whose `socket` and `accept4` take flags: a new socket needs no further call.

use rustix::net::{
    AddressFamily, Protocol, SocketFlags, SocketType, accept_with, acceptfrom_with, socket_with,
};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// What every socket of ours is from birth.
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A new non-blocking stream socket.
pub(super) fn stream_socket(family: AddressFamily, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::STREAM, FLAGS, protocol)?)
}

/// The next connection of a TCP listener, non-blocking.
pub(in crate::io) fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = acceptfrom_with(listener, FLAGS)?;
    let stream = TcpStream::from(socket);
    let peer = match peer.and_then(|addr| addr.try_into().ok()) {
        Some(addr) => addr,
        None => stream.peer_addr()?,
    };
    Ok((stream, peer))
}

/// The next connection of a Unix listener, non-blocking.
///
/// Its peer's address is asked for where it is wanted, which is rare: most peers have no name.
pub(in crate::io) fn accept_unix(listener: &UnixListener) -> io::Result<UnixStream> {
    Ok(UnixStream::from(accept_with(listener, FLAGS)?))
}
