//! [`UnixListener`].

use std::io;
use std::os::unix::net;
use std::path::Path;
use std::task::{Context, Poll, ready};

use paceline::simulated_sockets as simulated;

use super::SocketAddr;
use super::stream::UnixStream;
use crate::io::Interest;
use crate::io::registration::{Direction, Registration};
use crate::net::sockets::socket;

/// A Unix socket that accepts connections.
pub struct UnixListener {
    io: Registration<net::UnixListener>,
}

socket!(UnixListener, net::UnixListener);

impl UnixListener {
    #[track_caller]
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<UnixListener> {
        UnixListener::bind_addr(&SocketAddr::of_path(path.as_ref())?)
    }

    #[track_caller]
    pub fn bind_addr(socket_addr: &SocketAddr) -> io::Result<UnixListener> {
        let bind = |addr: &_| {
            let listener = net::UnixListener::bind_addr(addr)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        UnixListener::new(simulated::listener(&socket_addr.0, simulated::STD_BACKLOG, bind)?)
    }

    /// `listener` must be in non-blocking mode.
    pub(super) fn of(listener: socket2::Socket) -> io::Result<UnixListener> {
        UnixListener::new(listener.into())
    }

    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, peer) = self.io.async_io(Interest::READABLE, accept).await?;
        Ok((UnixStream::of_accepted(stream)?, peer))
    }

    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        let (stream, peer) = ready!(self.io.poll_io(Direction::Read, cx, accept))?;
        Poll::Ready(Ok((UnixStream::of_accepted(stream)?, peer)))
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let listener = self.io.get_ref();
        simulated::local_addr(listener).unwrap_or_else(|| listener.local_addr()).map(SocketAddr)
    }

    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let listener = self.io.get_ref();
        simulated::take_error(listener).unwrap_or_else(|| listener.take_error())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn accept(listener: &net::UnixListener) -> io::Result<(net::UnixStream, SocketAddr)> {
    let accept = |listener: &_| {
        let (socket, peer) = rustix::net::acceptfrom_with(listener, crate::net::sys::FLAGS)?;
        Ok((socket.into(), SocketAddr::of_system(peer)?.0))
    };
    simulated::accept(listener, accept).map(|(stream, peer)| (stream, SocketAddr(peer)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn accept(listener: &net::UnixListener) -> io::Result<(net::UnixStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, SocketAddr(peer)))
}
