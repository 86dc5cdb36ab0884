//! Platforms on which further calls make a new socket non-blocking and close-on-exec.

use rustix::net::{AddressFamily, Protocol, SocketType, socket};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// Creates a stream socket, non-blocking and close-on-exec.
pub(super) fn stream_socket(family: AddressFamily, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM, protocol)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    super::set_nonblocking(socket.as_fd())?;
    // The standard library passes a flag to each write that suppresses SIGPIPE. Apple's systems have no such
    // flag: there the socket itself has the option.
    #[cfg(target_vendor = "apple")]
    rustix::net::sockopt::set_socket_nosigpipe(&socket, true)?;
    Ok(socket)
}

/// Accepts a TCP connection and makes it non-blocking.
pub(in crate::io) fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, peer))
}

/// Accepts a Unix connection and makes it non-blocking.
pub(in crate::io) fn accept_unix(listener: &UnixListener) -> io::Result<UnixStream> {
    let (stream, _peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
