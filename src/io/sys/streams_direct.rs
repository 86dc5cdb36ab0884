//! Stream sockets without the C library. Its `recv` and `send` are points at which a thread may be cancelled: in a process
//! with a second thread they say so, and take it back, with a locked instruction each.

use crate::io::trust::is_stream_socket;
use crate::reactor::Source;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, IoSlice};

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

/// So much is copied to be written by one call for one piece of memory: one for several takes the system 150 ns longer.
const COPIED: usize = 1024;

/// What `write_vectored` of a `T` does that is a stream socket of std's, if it has little to write; `None` where there is no better way.
#[inline]
pub(in crate::io) fn write_stream_vectored<T>(
    socket: &Source,
    bufs: &[IoSlice<'_>],
) -> Option<io::Result<usize>> {
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

/// Receives into memory that may not have been written; so many bytes of it are then.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
#[inline]
pub(in crate::io) fn read_uninit<T>(
    socket: &crate::io::Async<T>,
    buf: &mut [std::mem::MaybeUninit<u8>],
) -> io::Result<usize> {
    let ((read, _), _) = recv(socket.source(), buf, RecvFlags::empty())?;
    Ok(read.len())
}
