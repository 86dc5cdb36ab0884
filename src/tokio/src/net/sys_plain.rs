//! System calls on other systems than Linux, through portable crates.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::io::registration::Source;

/// Receives, and returns how many bytes of `buf` have been written.
pub(super) fn recv(socket: &impl Source, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    SockRef::from(socket).recv(buf)
}

/// [`recv`] that leaves the bytes in the socket.
pub(super) fn peek(socket: &impl Source, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    SockRef::from(socket).peek(buf)
}

pub(super) fn send(socket: &impl Source, buf: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send(buf)
}

pub(super) fn send_vectored<T: Source>(socket: &T, bufs: &[IoSlice<'_>]) -> io::Result<usize>
where
    for<'a> &'a T: Write,
{
    Write::write_vectored(&mut &*socket, bufs)
}

/// Accepts a connection in non-blocking mode.
pub(super) fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, peer))
}

/// Makes a socket in non-blocking mode.
pub(super) fn socket(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    let socket = Socket::new(domain, kind, protocol)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
