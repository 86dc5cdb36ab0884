//! Platforms on which `socket` and `accept4` take flags: no further call is needed.

use rustix::net::{
    AddressFamily, Protocol, SocketFlags, SocketType, accept_with, acceptfrom_with, socket_with,
};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// The flags of every socket that this crate creates.
const SOCKET_FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Creates a stream socket, non-blocking and close-on-exec.
pub(super) fn stream_socket(family: AddressFamily, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::STREAM, SOCKET_FLAGS, protocol)?)
}

/// Accepts a TCP connection and makes it non-blocking.
pub(in crate::io) fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = acceptfrom_with(listener, SOCKET_FLAGS)?;
    let stream = TcpStream::from(socket);
    let peer = match peer.and_then(|addr| addr.try_into().ok()) {
        Some(addr) => addr,
        None => stream.peer_addr()?,
    };
    Ok((stream, peer))
}

/// Accepts a Unix connection and makes it non-blocking.
///
/// The caller asks for the peer's address if it needs it, which is rare: most peers have no name.
pub(in crate::io) fn accept_unix(listener: &UnixListener) -> io::Result<UnixStream> {
    Ok(UnixStream::from(accept_with(listener, SOCKET_FLAGS)?))
}
