//! System calls on Linux, without the C library. Its `recv` and `send` are cancellation points: in a process
//! with a second thread they set and reset a flag, with a locked instruction each.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use paceline::simulated_sockets as simulated;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with};
use socket2::{Domain, Protocol, Socket, Type};

/// The flags of every new socket.
pub(super) const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Receives, and returns how many bytes of `buf` have been written.
#[inline]
pub(super) fn recv(socket: &impl AsFd, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    if let Some(buf) = simulated::initialize(socket, buf) {
        return simulated::receive(socket, buf, false, |_, _| Ok(0));
    }
    let ((received, _), _) = rustix::net::recv(socket, buf, RecvFlags::empty())?;
    Ok(received.len())
}

/// [`recv`] that leaves the bytes in the socket.
pub(super) fn peek(socket: &impl AsFd, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    if let Some(buf) = simulated::initialize(socket, buf) {
        return simulated::receive(socket, buf, true, |_, _| Ok(0));
    }
    let ((received, _), _) = rustix::net::recv(socket, buf, RecvFlags::PEEK)?;
    Ok(received.len())
}

#[inline]
pub(super) fn send(socket: &impl AsFd, buf: &[u8]) -> io::Result<usize> {
    simulated::send(socket, buf, |socket, buf| Ok(rustix::net::send(socket, buf, SendFlags::NOSIGNAL)?))
}

/// Up to this size slices are copied and written by one call with one piece of memory: a call with several
/// pieces takes the system 150 ns longer.
const COPIED: usize = 1024;

pub(super) fn send_vectored<T: AsFd>(socket: &T, bufs: &[IoSlice<'_>]) -> io::Result<usize>
where
    for<'a> &'a T: Write,
{
    if let Some(sent) = simulated::send_vectored(socket, bufs) {
        return sent;
    }
    let sum = bufs.iter().fold(0, |sum: usize, buf| sum.saturating_add(buf.len()));
    if sum > COPIED {
        return Write::write_vectored(&mut &*socket, bufs);
    }
    let mut copy = [0; COPIED];
    let mut len = 0;
    for buf in bufs {
        copy[len..len + buf.len()].copy_from_slice(buf);
        len += buf.len();
    }
    send(socket, &copy[..len])
}

/// Accepts a connection in non-blocking mode.
pub(super) fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    simulated::accept(listener, |listener| {
        let (socket, peer) = acceptfrom_with(listener, FLAGS)?;
        let stream = TcpStream::from(socket);
        let peer = match peer.and_then(|peer| peer.try_into().ok()) {
            Some(peer) => peer,
            None => stream.peer_addr()?,
        };
        Ok((stream, peer))
    })
}

/// Makes a socket in non-blocking mode.
pub(super) fn socket(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    let family = match domain {
        Domain::IPV4 => simulated::AddressFamily::V4,
        Domain::IPV6 => simulated::AddressFamily::V6,
        _ => simulated::AddressFamily::Unix,
    };
    let simulated = simulated::SocketType { is_stream: kind == Type::STREAM, family };
    simulated::socket(simulated, || Socket::new(domain, kind.nonblocking(), protocol))
}
