//! [`Raw`]: waits that trust the cached readiness, for the package that replaces tokio.

use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use super::async_handle::Async;
use super::transfer::SURE_BYTES;
use crate::reactor::{Direction, Displace, Marks, Noted, ReadinessSnapshot, Until};

impl<T> Async<T> {
    /// Returns the waits of the handle for operations that return `WouldBlock` only if the *descriptor* did,
    /// as the caller promises. An operation that reads through a buffer breaks that and hangs: bytes that had
    /// arrived before are not reported again.
    #[doc(hidden)]
    pub fn raw(&self) -> Raw<'_, T> {
        Raw(self)
    }
}

/// The waits of a handle: see [`Async::raw`]. A wait returns an error once the runtime in which the handle
/// was registered is gone.
///
/// Only the last task that waits in one direction through a `poll_` method is woken.
#[derive(Debug)]
pub struct Raw<'a, T>(&'a Async<T>);

impl<T> Clone for Raw<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Raw<'_, T> {}

impl<T> Raw<'_, T> {
    /// Runs an operation, and again each time that the handle becomes ready, until the operation returns
    /// something other than `WouldBlock` or `Interrupted`.
    #[inline]
    pub fn poll<R>(
        self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.0.source().poll_io(direction, cx, Displace::Quietly, || op(self.0.get_ref()))
    }

    /// Like [`poll`](Self::poll), for a transfer of bytes through a stream socket. A transfer of fewer than
    /// `full` bytes proves that no more can be moved, so the next one waits without a system call to find
    /// that out. The proof holds for TCP in both directions and for the writing side of a Unix stream.
    #[inline]
    pub fn poll_up_to(
        self,
        direction: Direction,
        cx: &mut Context<'_>,
        full: usize,
        mut op: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let full = full.min(SURE_BYTES);
        self.0.source().poll_transfer(direction, cx, Displace::Quietly, full, || op(self.0.get_ref()))
    }

    /// Waits until the handle is known to be ready. It counts as ready until an operation finds that it is
    /// not, or until a caller [forgets](Self::forget) it.
    pub fn poll_ready(self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<Readiness>> {
        ready!(self.0.source().poll_ready(direction, cx))?;
        Poll::Ready(Ok(self.readiness()))
    }

    /// Waits for the next event after `seen` that may make the handle ready, for a caller that looks for an
    /// error, an end or urgent data. Any number of tasks may wait at once.
    pub async fn event(self, direction: Direction, seen: Readiness) -> io::Result<Readiness> {
        self.0.source().event(direction, seen.word).await?;
        Ok(self.readiness())
    }

    /// Records that the handle is not ready, because an operation made elsewhere returned `WouldBlock`.
    /// Events after `seen` are kept.
    pub fn forget(self, direction: Direction, seen: Readiness) {
        self.0.source().forget(direction, seen.word);
    }

    /// Takes back that a new handle counts as ready until an operation finds otherwise, unless an event has
    /// reported that it is. Call this before the first operation.
    pub fn presume_not_ready(self, direction: Direction) {
        self.0.source().presume_not_ready(direction);
    }

    /// Returns what is known about the handle, without a wait. If an [end](Readiness::is_read_closed) was
    /// reported, this makes a system call to check whether it still holds.
    pub fn readiness(self) -> Readiness {
        let (word, marks) = self.0.source().known_to_hold();
        Readiness { word, marks }
    }

    /// Forgets that there was an error or urgent data, unless something was reported after `seen`.
    pub fn forget_marks(self, seen: Readiness) {
        self.0.source().forget_marks(seen.marks);
    }
}

/// The state of a handle at one moment, as far as it is known: see [`Raw::readiness`].
///
/// Epoll reports that a handle has ended or failed. On the portable path only an operation finds that out.
#[derive(Clone, Copy)]
pub struct Readiness {
    word: ReadinessSnapshot,
    marks: Noted,
}

impl Readiness {
    /// Returns whether a read can proceed, or may find an end or an error.
    pub fn is_readable(self) -> bool {
        self.word.has(Direction::Read, Until::Ready)
    }

    /// Returns whether a write can proceed, or may find an error.
    pub fn is_writable(self) -> bool {
        self.word.has(Direction::Write, Until::Ready)
    }

    /// Returns whether no more data comes after what can be read now: the peer has ended its side, or is
    /// gone.
    ///
    /// The end was reported, and held when this [`Readiness`] was made. The end of a connected stream is
    /// final. A FIFO may get another writer, a terminal another user, and a stream socket counts as ended
    /// until it is connected.
    pub fn is_read_closed(self) -> bool {
        self.marks.has(Marks::READ_CLOSED)
    }

    /// Returns whether nothing can be written any more: both sides of the stream have ended.
    ///
    /// The answer is as final as that of [`is_read_closed`](Self::is_read_closed). A pipe whose reader is
    /// gone reports an [error](Self::is_error) instead. So does a datagram socket whose last datagram was
    /// refused, which can still send.
    pub fn is_write_closed(self) -> bool {
        self.marks.has(Marks::WRITE_CLOSED)
    }

    /// Returns whether there was an error to collect.
    pub fn is_error(self) -> bool {
        self.marks.has(Marks::ERROR)
    }

    /// Returns whether there was urgent data to read.
    pub fn is_priority(self) -> bool {
        self.marks.has(Marks::PRIORITY)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [
            ("readable", self.is_readable()),
            ("writable", self.is_writable()),
            ("read closed", self.is_read_closed()),
            ("write closed", self.is_write_closed()),
            ("error", self.is_error()),
            ("priority", self.is_priority()),
        ];
        f.debug_set().entries(said.iter().filter(|(_, is)| *is).map(|(name, _)| name)).finish()
    }
}
