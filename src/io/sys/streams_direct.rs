//! Stream sockets without the C library. The `recv` and `send` of that library are cancellation points: in a
//! process with more than one thread each call pays two locked instructions, to enable cancellation and to
//! disable it again.

use crate::io::trust::is_stream_socket;
use crate::reactor::Source;
use crate::simulated::sockets;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, IoSlice, IoSliceMut};

/// Returns whether `T` is a stream socket of the standard library, or the socket a simulated one.
#[inline]
fn is_direct<T>(socket: &Source) -> bool {
    is_stream_socket::<T>() || sockets::is_placeholder(socket)
}

/// Reads as `Read::read` does if `T` is a stream socket of the standard library; else returns `None`.
#[inline]
pub(in crate::io) fn read_stream<T>(socket: &Source, buf: &mut [u8]) -> Option<io::Result<usize>> {
    let recv = |socket: &_, buf: &mut _| Ok(recv(socket, buf, RecvFlags::empty())?.0);
    is_direct::<T>(socket).then(|| sockets::receive(socket, buf, false, recv))
}

/// Writes as `Write::write` does if `T` is a stream socket of the standard library; else returns `None`.
#[inline]
pub(in crate::io) fn write_stream<T>(socket: &Source, buf: &[u8]) -> Option<io::Result<usize>> {
    let send = |socket: &_, buf: &_| Ok(send(socket, buf, SendFlags::NOSIGNAL)?);
    is_direct::<T>(socket).then(|| sockets::send(socket, buf, send))
}

/// The largest sum of slices, in bytes, that is copied into one buffer first: the kernel takes about 150 ns
/// longer for a vectored write than for a plain one.
const COPIED: usize = 1024;

/// Writes as `Write::write_vectored` does if `T` is a stream socket of the standard library and the slices
/// have at most [`COPIED`] bytes together; else returns `None`.
#[inline]
pub(in crate::io) fn write_vectored<T>(socket: &Source, bufs: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
    if let Some(sent) = sockets::send_vectored(socket, bufs) {
        return Some(sent);
    }
    let sum = || bufs.iter().map(|buf| buf.len()).fold(0, usize::saturating_add);
    if !is_stream_socket::<T>() || sum() > COPIED {
        return None;
    }
    let mut copy = [0; COPIED];
    let mut len = 0;
    for buf in bufs {
        copy[len..len + buf.len()].copy_from_slice(buf);
        len += buf.len();
    }
    write_stream::<T>(socket, &copy[..len])
}

/// Reads as `Read::read_vectored` does if the socket is simulated; else returns `None`.
#[inline]
pub(in crate::io) fn read_vectored(
    socket: &Source,
    bufs: &mut [IoSliceMut<'_>],
) -> Option<io::Result<usize>> {
    sockets::receive_vectored(socket, bufs)
}

/// Receives into memory that may be uninitialized. Returns how many bytes it received; they are at the start
/// of `buf`.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
#[inline]
pub(in crate::io) fn read_uninit<T>(
    socket: &crate::io::Async<T>,
    buf: &mut [std::mem::MaybeUninit<u8>],
) -> io::Result<usize> {
    if let Some(buf) = sockets::initialize(socket.source(), buf) {
        return sockets::receive(socket.source(), buf, false, |_, _| Ok(0));
    }
    let ((read, _), _) = recv(socket.source(), buf, RecvFlags::empty())?;
    Ok(read.len())
}
