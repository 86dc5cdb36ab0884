//! Stream sockets as the standard library has them: it knows what the platform needs.

use crate::reactor::Source;
use std::io::{self, IoSlice};

/// There is no better way than `read` of std's.
#[inline]
pub(in crate::io) fn read_stream<T>(_: &Source, _: &mut [u8]) -> Option<io::Result<usize>> {
    None
}

/// There is no better way than `write` of std's.
#[inline]
pub(in crate::io) fn write_stream<T>(_: &Source, _: &[u8]) -> Option<io::Result<usize>> {
    None
}

/// There is no better way than `write_vectored` of std's.
#[inline]
pub(in crate::io) fn write_stream_vectored<T>(_: &Source, _: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
    None
}

/// Receives into memory that may not have been written; so many bytes of it are then.
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
