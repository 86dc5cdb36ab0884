//! Bytes from and to a socket, also into uninitialised memory.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::task::{Context, Poll, ready};

use super::sys;
use crate::io::ReadBuf;
use crate::io::registration::{Direction, Registration, Source};

/// The meaning of a short read of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortRead {
    /// The socket is drained.
    Drained,
    /// No conclusion: the read may have ended behind a message that carries descriptors.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for Unix streams"))]
    Anything,
}

impl<T: Source> Registration<T> {
    #[inline]
    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        short: ShortRead,
    ) -> Poll<io::Result<()>> {
        let full = if short == ShortRead::Drained { buf.remaining() } else { 0 };
        let read = |buf: &mut [MaybeUninit<u8>]| {
            let read = self.poll_up_to(Direction::Read, cx, full, |io| sys::recv(io, buf));
            read.map_ok(|read| (read, ()))
        };
        // SAFETY: `recv` returns how many bytes it has written.
        unsafe { poll_fill(buf, read) }
    }

    #[inline]
    pub(super) fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_up_to(Direction::Write, cx, buf.len(), |io| sys::send(io, buf))
    }

    pub(super) fn poll_send_vectored(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>
    where
        for<'a> &'a T: Write,
    {
        /// The number of slices that one call moves on any system: the minimum of POSIX.
        const SURE: usize = 16;
        let full = bufs.iter().take(SURE).fold(0, |sum: usize, buf| sum.saturating_add(buf.len()));
        self.poll_up_to(Direction::Write, cx, full, |io| sys::send_vectored(io, bufs))
    }
}

/// Makes `read` fill the rest of `buf`.
///
/// # Safety
///
/// `read` must return how many bytes it has written, from the beginning.
#[inline]
pub(super) unsafe fn poll_fill<R>(
    buf: &mut ReadBuf<'_>,
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> Poll<io::Result<(usize, R)>>,
) -> Poll<io::Result<R>> {
    // SAFETY: initialised memory stays so, because memory is only written to.
    let unfilled = unsafe { buf.unfilled_mut() };
    let (len, result) = ready!(read(unfilled))?;
    // SAFETY: so many bytes have been written, as the caller promises.
    unsafe { buf.assume_init(len) };
    buf.advance(len);
    Poll::Ready(Ok(result))
}

/// Makes `read` fill the rest of `buf`, as far as it is contiguous.
///
/// # Safety
///
/// As for [`poll_fill`].
#[cfg(feature = "io-util")]
pub(crate) unsafe fn fill<R>(
    buf: &mut impl bytes::BufMut,
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<(usize, R)>,
) -> io::Result<(usize, R)> {
    // SAFETY: memory is only written to.
    let (len, result) = read(unsafe { buf.chunk_mut().as_uninit_slice_mut() })?;
    // SAFETY: so many bytes have been written, as the caller promises.
    unsafe { buf.advance_mut(len) };
    Ok((len, result))
}

/// Returns the same memory, for code that only writes to it.
pub(super) fn as_uninit(buf: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the types have the same layout. Only `recv` and `peek` of this crate use the result, and they
    // write only initialised bytes.
    unsafe { &mut *(std::ptr::from_mut(buf) as *mut [MaybeUninit<u8>]) }
}
