//! Stream sockets by way of the standard library, which knows what the platform needs.

use crate::reactor::Source;
use std::io::{self, IoSlice, IoSliceMut};

/// Returns `None`: the caller uses `Read::read`.
#[inline]
pub(in crate::io) fn read_stream<T>(_: &Source, _: &mut [u8]) -> Option<io::Result<usize>> {
    None
}

/// Returns `None`: the caller uses `Write::write`.
#[inline]
pub(in crate::io) fn write_stream<T>(_: &Source, _: &[u8]) -> Option<io::Result<usize>> {
    None
}

/// Returns `None`: the caller uses `Write::write_vectored`.
#[inline]
pub(in crate::io) fn write_vectored<T>(_: &Source, _: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
    None
}

/// Returns `None`: the caller uses `Read::read_vectored`.
#[inline]
pub(in crate::io) fn read_vectored(_: &Source, _: &mut [IoSliceMut<'_>]) -> Option<io::Result<usize>> {
    None
}

/// Receives into memory that may be uninitialized. Returns how many bytes it received; they are at the start
/// of `buf`.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
#[inline]
pub(in crate::io) fn read_uninit<T>(
    socket: &crate::io::Async<T>,
    buf: &mut [std::mem::MaybeUninit<u8>],
) -> io::Result<usize>
where
    for<'s> socket2::SockRef<'s>: From<&'s T>,
{
    socket2::SockRef::from(socket.get_ref()).recv(buf)
}
