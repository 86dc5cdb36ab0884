//! [`UnixDatagram`].

use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net;
use std::path::Path;
use std::task::{Context, Poll};

use paceline::simulated_sockets as simulated;
use rustix::net::{RecvFlags, recvfrom};

use super::SocketAddr;
use crate::io::registration::{Direction, Registration};
use crate::io::{Interest, ReadBuf};
use crate::net::datagrams::datagrams;
use crate::net::sys;
#[cfg(feature = "io-util")]
use crate::net::transfer::fill;
use crate::net::transfer::{ShortRead, as_uninit, poll_fill};

/// A Unix socket for datagrams.
pub struct UnixDatagram {
    io: Registration<net::UnixDatagram>,
}

datagrams!(UnixDatagram, net::UnixDatagram, SocketAddr, recv_from);

fn recv_from(socket: &net::UnixDatagram, buf: &mut [MaybeUninit<u8>]) -> io::Result<(usize, SocketAddr)> {
    if let Some(buf) = simulated::initialize(socket, buf) {
        let received = simulated::receive_from(socket, buf, false, net::UnixDatagram::recv_from);
        return received.map(|(len, from)| (len, SocketAddr(from)));
    }
    let ((received, _), _, sender) = recvfrom(socket, buf, RecvFlags::empty())?;
    Ok((received.len(), SocketAddr::of_system(sender)?))
}

fn send_to(socket: &net::UnixDatagram, buf: &[u8], target: &Path) -> io::Result<usize> {
    simulated::send_to(socket, buf, target, net::UnixDatagram::send_to)
}

impl UnixDatagram {
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<UnixDatagram> {
        UnixDatagram::of(simulated::datagrams(path.as_ref(), net::UnixDatagram::bind)?)
    }

    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (one, other) = simulated::pair(false, net::UnixDatagram::pair)?;
        Ok((UnixDatagram::of_pair(one)?, UnixDatagram::of_pair(other)?))
    }

    pub fn unbound() -> io::Result<UnixDatagram> {
        UnixDatagram::of(simulated::socket(simulated::UNIX_DATAGRAM, net::UnixDatagram::unbound)?)
    }

    fn of(socket: net::UnixDatagram) -> io::Result<UnixDatagram> {
        socket.set_nonblocking(true)?;
        UnixDatagram::new(socket)
    }

    /// No datagram has been sent yet.
    fn of_pair(socket: net::UnixDatagram) -> io::Result<UnixDatagram> {
        socket.set_nonblocking(true)?;
        let io = Registration::of_ready(socket)?;
        io.presume_unreadable();
        Ok(UnixDatagram { io })
    }

    /// `socket` must be in non-blocking mode.
    pub(super) fn of_socket(socket: socket2::Socket) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::new(socket.into())?;
        match socket.take_error()? {
            Some(error) => Err(error),
            None => Ok(socket),
        }
    }

    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        simulated::connect(self.io.get_ref(), path.as_ref(), net::UnixDatagram::connect)
    }

    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        self.io.async_io(Interest::WRITABLE, |io| send_to(io, buf, target.as_ref())).await
    }

    pub fn poll_send_to<P: AsRef<Path>>(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: P,
    ) -> Poll<io::Result<usize>> {
        self.io.poll_io(Direction::Write, cx, |io| send_to(io, buf, target.as_ref()))
    }

    pub fn try_send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |io| send_to(io, buf, target.as_ref()))
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let socket = self.io.get_ref();
        simulated::local_addr(socket).unwrap_or_else(|| socket.local_addr()).map(SocketAddr)
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let socket = self.io.get_ref();
        simulated::peer_addr(socket).unwrap_or_else(|| socket.peer_addr()).map(SocketAddr)
    }

    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        simulated::shutdown(self.io.get_ref(), how, net::UnixDatagram::shutdown)
    }
}
