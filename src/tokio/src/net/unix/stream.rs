//! [`UnixStream`].

use std::io;
use std::os::unix::net;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use paceline::simulated_sockets as simulated;
use socket2::{Domain, SockAddr, Socket, Type};

use super::{SocketAddr, UCred};
use crate::io::registration::Registration;
use crate::io::{Interest, ReadBuf};
use crate::net::streams::stream;
use crate::net::transfer::ShortRead;
use crate::net::{sockets, sys};

/// A connection through a Unix socket.
pub struct UnixStream {
    io: Registration<net::UnixStream>,
}

stream!(UnixStream, net::UnixStream, ShortRead::Anything);

impl UnixStream {
    pub async fn connect<P: AsRef<Path>>(path: P) -> io::Result<UnixStream> {
        let addr = SocketAddr::of_path(path.as_ref())?;
        UnixStream::connect_addr(&addr).await
    }

    pub async fn connect_addr(socket_addr: &SocketAddr) -> io::Result<UnixStream> {
        let addr = socket_addr.to_system()?;
        UnixStream::connect_by(sys::socket(Domain::UNIX, Type::STREAM, None)?, &addr).await
    }

    /// `socket` must be in non-blocking mode.
    pub(super) async fn connect_by(socket: Socket, addr: &SockAddr) -> io::Result<UnixStream> {
        Ok(UnixStream { io: sockets::connect(socket, addr).await? })
    }

    /// The first bytes of a peer that has just connected have often arrived.
    pub(super) fn of_accepted(stream: net::UnixStream) -> io::Result<UnixStream> {
        Ok(UnixStream { io: Registration::of_ready(stream)? })
    }

    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = simulated::pair(true, net::UnixStream::pair)?;
        Ok((UnixStream::of_pair(one)?, UnixStream::of_pair(other)?))
    }

    /// No bytes have been written yet.
    fn of_pair(stream: net::UnixStream) -> io::Result<UnixStream> {
        stream.set_nonblocking(true)?;
        let stream = UnixStream::of_accepted(stream)?;
        stream.io.presume_unreadable();
        Ok(stream)
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let stream = self.io.get_ref();
        simulated::local_addr(stream).unwrap_or_else(|| stream.local_addr()).map(SocketAddr)
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let stream = self.io.get_ref();
        simulated::peer_addr(stream).unwrap_or_else(|| stream.peer_addr()).map(SocketAddr)
    }

    pub fn peer_cred(&self) -> io::Result<UCred> {
        UCred::of_peer(self.io.get_ref())
    }
}
