//! Platforms on which a new socket is made non-blocking, and closed on exec, by calls of their own.

use rustix::net::{AddressFamily, Protocol, SocketType, socket};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// A new non-blocking stream socket.
pub(super) fn stream_socket(family: AddressFamily, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM, protocol)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    super::set_nonblocking(socket.as_fd())?;
    // The standard library writes with a flag that suppresses SIGPIPE, except here, where the socket itself has it.
    #[cfg(target_vendor = "apple")]
    rustix::net::sockopt::set_socket_nosigpipe(&socket, true)?;
    Ok(socket)
}

/// The next connection of a TCP listener, non-blocking.
pub(in crate::io) fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, peer))
}

/// The next connection of a Unix listener, non-blocking.
pub(in crate::io) fn accept_unix(listener: &UnixListener) -> io::Result<UnixStream> {
    let (stream, _peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
