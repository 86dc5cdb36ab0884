//! `AsyncRead` and `AsyncWrite` for handles that read and write.
//!
//! By value they need [`IoSafe`], because the inner handle is lent out mutably. By reference they need nothing:
//! whoever has a `&T` cannot move its descriptor away.
//!
//! Closing only flushes. A stream that should be shut down in one direction is told so through its own method, such
//! as [`TcpStream::shutdown`](std::net::TcpStream::shutdown).

use super::async_handle::Async;
use super::io_safe::IoSafe;
use super::proof::{self, Proof};
use super::retry::poll_retry;
use super::sys;
use crate::reactor::{Direction, Source};
use futures::io::{AsyncRead, AsyncWrite};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

impl<T: IoSafe + Read> AsyncRead for Async<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        // SAFETY: `IoSafe` promises that reading does not replace the descriptor.
        let (source, io) = unsafe { self.parts_mut() };
        poll_read_of::<T>(source, cx, buf.len(), || read_into::<T>(source, buf, |buf| io.read(buf)))
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        // SAFETY: `IoSafe` promises that reading does not replace the descriptor.
        let (source, io) = unsafe { self.parts_mut() };
        let len = sure_len(bufs.iter().map(|buf| buf.len()));
        poll_read_of::<T>(source, cx, len, || io.read_vectored(bufs))
    }
}

impl<T> AsyncRead for &Async<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let (source, mut io) = (self.source(), self.get_ref());
        poll_read_of::<T>(source, cx, buf.len(), || read_into::<T>(source, buf, |buf| io.read(buf)))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut io = self.get_ref();
        let len = sure_len(bufs.iter().map(|buf| buf.len()));
        poll_read_of::<T>(self.source(), cx, len, || io.read_vectored(bufs))
    }
}

impl<T: IoSafe + Write> AsyncWrite for Async<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        // SAFETY: `IoSafe` promises that writing does not replace the descriptor.
        let (source, io) = unsafe { self.parts_mut() };
        poll_write_of::<T>(source, cx, buf.len(), || write_from::<T>(source, buf, |buf| io.write(buf)))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // SAFETY: `IoSafe` promises that writing does not replace the descriptor.
        let (source, io) = unsafe { self.parts_mut() };
        let len = sure_len(bufs.iter().map(|buf| buf.len()));
        poll_write_of::<T>(source, cx, len, || io.write_vectored(bufs))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // SAFETY: `IoSafe` promises that writing does not replace the descriptor.
        let (source, io) = unsafe { self.parts_mut() };
        poll_flush_of::<T>(source, cx, || io.flush())
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl<T> AsyncWrite for &Async<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let (source, mut io) = (self.source(), self.get_ref());
        poll_write_of::<T>(source, cx, buf.len(), || write_from::<T>(source, buf, |buf| io.write(buf)))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut io = self.get_ref();
        let len = sure_len(bufs.iter().map(|buf| buf.len()));
        poll_write_of::<T>(self.source(), cx, len, || io.write_vectored(bufs))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut io = self.get_ref();
        poll_flush_of::<T>(self.source(), cx, || io.flush())
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// So many slices are moved by one call on any system: what POSIX demands. Linux takes 1024.
const SURE_SLICES: usize = 16;

/// So many bytes, too, if there are as many. Linux stops at 0x7fff_f000, others at `i32::MAX`.
const SURE_BYTES: usize = 1 << 30;

/// How much of a vectored transfer no system leaves for another call. Slices may name the same bytes twice, so the sum may
/// not fit.
fn sure_len(lens: impl Iterator<Item = usize>) -> usize {
    lens.take(SURE_SLICES).fold(0, usize::saturating_add)
}

/// Reads as `T` does, the best way there is.
#[inline]
fn read_into<T>(
    source: &Source,
    buf: &mut [u8],
    read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let direct = if proof::is_stream_socket::<T>() { sys::read_stream(source, buf) } else { None };
    direct.unwrap_or_else(|| read(buf))
}

/// Writes as `T` does, the best way there is.
#[inline]
fn write_from<T>(
    source: &Source,
    buf: &[u8],
    write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let direct = if proof::is_stream_socket::<T>() { sys::write_stream(source, buf) } else { None };
    direct.unwrap_or_else(|| write(buf))
}

/// Runs a read of `T` into a buffer of `len` bytes, or more.
fn poll_read_of<T>(
    source: &Source,
    cx: &mut Context<'_>,
    len: usize,
    op: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    poll_transfer(source, Direction::Read, proof::of_read::<T>(), cx, len, op)
}

/// Runs a write of `T` from a buffer of `len` bytes, or more.
fn poll_write_of<T>(
    source: &Source,
    cx: &mut Context<'_>,
    len: usize,
    op: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    poll_transfer(source, Direction::Write, proof::of_write::<T>(), cx, len, op)
}

/// Waits as the proof allows.
fn poll_transfer(
    source: &Source,
    dir: Direction,
    proof: Proof,
    cx: &mut Context<'_>,
    len: usize,
    mut op: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    if len == 0 {
        // A transfer of nothing proves nothing, and only the handle itself knows whether it has to wait.
        return poll_at_once(source, dir, proof, cx, op);
    }
    match proof {
        Proof::Nothing => poll_retry(source, dir, cx, op),
        Proof::WouldBlock => source.poll_transfer(dir, cx, 0, &mut op),
        Proof::ShortTransfer => source.poll_transfer(dir, cx, len.min(SURE_BYTES), &mut op),
    }
}

/// Flushes what `T` buffers.
fn poll_flush_of<T>(
    source: &Source,
    cx: &mut Context<'_>,
    op: impl FnMut() -> io::Result<()>,
) -> Poll<io::Result<()>> {
    poll_at_once(source, Direction::Write, proof::of_write::<T>(), cx, op)
}

/// Runs an operation that may well have nothing to do, even if the descriptor is known not to be ready, and waits
/// only if it says `WouldBlock`.
fn poll_at_once<R>(
    source: &Source,
    dir: Direction,
    proof: Proof,
    cx: &mut Context<'_>,
    mut op: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    match op() {
        Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
        result => return Poll::Ready(result),
    }
    match proof {
        Proof::Nothing => poll_retry(source, dir, cx, op),
        Proof::WouldBlock | Proof::ShortTransfer => source.poll_io(dir, cx, op),
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::{SURE_SLICES, sure_len};

    #[test]
    fn slices_that_a_call_may_leave_alone_are_not_counted() {
        assert_eq!(sure_len([3, 4].into_iter()), 7);
        assert_eq!(sure_len([1; 3000].into_iter()), SURE_SLICES);
        assert_eq!(sure_len([usize::MAX; 2].into_iter()), usize::MAX);
    }
}
