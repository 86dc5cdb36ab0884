//! Stream sockets without the C library. Its `recv` and `send` are points at which a thread may be cancelled: in a process
//! with a second thread they say so, and take it back, with a locked instruction each.

use crate::io::trust::is_stream_socket;
use crate::reactor::Source;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;

/// What `read` of a `T` does that is a stream socket of std's; `None` where there is no better way.
#[inline]
pub(in crate::io) fn read_stream<T>(socket: &Source, buf: &mut [u8]) -> Option<io::Result<usize>> {
    is_stream_socket::<T>()
        .then(|| recv(socket, buf, RecvFlags::empty()).map(|(read, _)| read).map_err(Into::into))
}

/// What `write` of a `T` does that is a stream socket of std's; `None` where there is no better way.
#[inline]
pub(in crate::io) fn write_stream<T>(socket: &Source, buf: &[u8]) -> Option<io::Result<usize>> {
    is_stream_socket::<T>().then(|| send(socket, buf, SendFlags::NOSIGNAL).map_err(Into::into))
}
