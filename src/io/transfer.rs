//! `AsyncRead` and `AsyncWrite` for handles that read and write.
//!
//! `Async<T>` needs [`IoSafe`], because the inner handle is lent out mutably. `&Async<T>` does not: a `&T`
//! cannot close or replace its descriptor.
//!
//! Closing only flushes. To shut down one direction of a stream, call its own method, such as
//! [`TcpStream::shutdown`](std::net::TcpStream::shutdown).

use super::async_handle::Async;
use super::io_safe::IoSafe;
use super::retry::poll_retry;
use super::sys;
use super::trust::{self, Trust};
use crate::budget;
use crate::reactor::{Direction, Source};
use futures::io::{AsyncRead, AsyncWrite};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Implements both traits for `$handle`. `$parts` takes the registration, and a reader or writer, out of
/// `$this`, a `&mut $handle`.
macro_rules! transfers {
    ($handle:ty, read: [$($readable:tt)*], write: [$($writable:tt)*], |$this:ident| $parts:expr) => {
        impl<T> AsyncRead for $handle
        where
            $($readable)*
        {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                let (source, mut io) = $parts;
                poll_transfer(source, Direction::Read, trust::of_read::<T>(), cx, buf.len(), || {
                    sys::read_stream::<T>(source, buf).unwrap_or_else(|| Read::read(&mut io, buf))
                })
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                let (source, mut io) = $parts;
                let len = sure_len(bufs.iter().map(|buf| buf.len()));
                poll_transfer(source, Direction::Read, trust::of_read::<T>(), cx, len, || {
                    sys::read_vectored(source, bufs).unwrap_or_else(|| Read::read_vectored(&mut io, bufs))
                })
            }
        }

        impl<T> AsyncWrite for $handle
        where
            $($writable)*
        {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                let (source, mut io) = $parts;
                poll_transfer(source, Direction::Write, trust::of_write::<T>(), cx, buf.len(), || {
                    sys::write_stream::<T>(source, buf).unwrap_or_else(|| Write::write(&mut io, buf))
                })
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                let (source, mut io) = $parts;
                let len = sure_len(bufs.iter().map(|buf| buf.len()));
                poll_transfer(source, Direction::Write, trust::of_write::<T>(), cx, len, || {
                    sys::write_vectored::<T>(source, bufs)
                        .unwrap_or_else(|| Write::write_vectored(&mut io, bufs))
                })
            }

            /// Flushes the handle: a buffer inside it is written. `poll_close` does the same, and does not
            /// shut the handle down.
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = self.get_mut();
                let (source, mut io) = $parts;
                poll_at_once(source, Direction::Write, trust::of_write::<T>(), cx, || Write::flush(&mut io))
            }

            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush(cx)
            }
        }
    };
}

transfers!(Async<T>, read: [T: IoSafe + Read], write: [T: IoSafe + Write], |this| {
    // SAFETY: `IoSafe` promises that neither reading nor writing replaces the descriptor.
    unsafe { this.parts_mut() }
});

transfers!(&Async<T>, read: [for<'a> &'a T: Read], write: [for<'a> &'a T: Write], |this| {
    (this.source(), this.get_ref())
});

/// The number of slices that one call moves on any system: POSIX guarantees 16. Linux takes 1024.
const SURE_SLICES: usize = 16;

/// Returns how many bytes of a vectored transfer one call moves on any system. Slices may share memory, so
/// their sum may overflow.
fn sure_len(lens: impl Iterator<Item = usize>) -> usize {
    lens.take(SURE_SLICES).fold(0, usize::saturating_add)
}

/// Runs a transfer that asks for `len` bytes or more, and waits while it returns `WouldBlock`. `trust` says
/// which of its outcomes prove that the descriptor is drained, or full: then the transfer is not tried
/// before the next event. A result of zero bytes proves nothing. If `len` is zero or `trust` is `Nothing`,
/// the transfer runs at once, whatever is known of the readiness, and an `Interrupted` of that attempt is
/// returned; other attempts are repeated after a signal. Any number of tasks may wait at once. Returns the
/// errors of the wait, too.
pub(super) fn poll_transfer(
    source: &Source,
    dir: Direction,
    trust: Trust,
    cx: &mut Context<'_>,
    len: usize,
    op: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    budget::spend(cx.waker(), || match trust {
        Trust::ShortTransfer if len > 0 => source.poll_transfer(dir, cx, len, op),
        Trust::WouldBlock if len > 0 => source.poll_transfer(dir, cx, 0, op),
        // Whether a transfer of zero bytes has to wait is known to the handle only.
        _ => poll_at_once(source, dir, trust, cx, op),
    })
}

/// Runs an operation that may succeed even if the descriptor is known not to be ready. Waits only after it
/// has returned `WouldBlock`.
fn poll_at_once<R>(
    source: &Source,
    dir: Direction,
    trust: Trust,
    cx: &mut Context<'_>,
    mut op: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    if trust == Trust::Nothing {
        return poll_retry(op, || source.poll_shared(dir, |after| source.poll_blind(dir, after, cx)));
    }
    match op() {
        Err(err) if err.kind() == io::ErrorKind::WouldBlock => source.poll_io(dir, cx, op),
        result => Poll::Ready(result),
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
