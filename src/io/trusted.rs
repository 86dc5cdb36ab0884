//! [`Trusted`]: waiting for operations whose `WouldBlock` comes from the descriptor, and the readiness that
//! is known.

use super::async_handle::Async;
use super::transfer::SURE_BYTES;
use crate::reactor::{Direction, Displace, Marks, Noted, ReadinessSnapshot, Until};
use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

impl<T> Async<T> {
    /// Returns a view of the handle for operations that return `WouldBlock` only if the *descriptor* did.
    ///
    /// The caller promises that of its operations. One system call of the standard library or of your own
    /// keeps the promise. An operation that reads through a buffer, or waits for a whole message, breaks it
    /// and hangs: bytes that had arrived before are not reported again. Use [`read_with`](Async::read_with)
    /// for such an operation: it asks the operating system before each wait.
    ///
    /// In return, readiness that is known is remembered, and an operation that is known to fail with
    /// `WouldBlock` is not tried.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = socket.get_ref().local_addr()?;
    ///     socket.trusted().write(|s| s.send_to(b"to myself", addr)).await?;
    ///     let (received, _from) = socket.trusted().read(|s| s.recv_from(&mut [0; 16])).await?;
    ///     assert_eq!(received, 9);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn trusted(&self) -> Trusted<'_, T> {
        Trusted { handle: self }
    }
}

/// A handle whose operations are trusted: see [`Async::trusted`].
///
/// * An operation: [`poll_read`](Trusted::poll_read) and [`poll_write`](Trusted::poll_write) for one task in
///   each direction, the last one that polls; [`read`](Trusted::read) and [`write`](Trusted::write) for any
///   number of tasks; [`try_read`](Trusted::try_read) and [`try_write`](Trusted::try_write) without a wait.
/// * A transfer of bytes: [`poll_read_up_to`](Trusted::poll_read_up_to) and
///   [`poll_write_up_to`](Trusted::poll_write_up_to), for one task in each direction.
/// * Readiness: [`poll_read_ready`](Trusted::poll_read_ready) and
///   [`poll_write_ready`](Trusted::poll_write_ready) for one task in each direction;
///   [`read_ready`](Trusted::read_ready) and [`write_ready`](Trusted::write_ready) for any number of tasks;
///   [`readiness`](Trusted::readiness) without a wait.
///
/// A wait returns an error once the runtime in which the handle was registered is gone.
///
/// ```
/// use paceline::{Async, Trusted};
/// use std::io;
/// use std::net::UdpSocket;
///
/// fn take(socket: Trusted<'_, UdpSocket>) -> io::Result<usize> {
///     socket.try_read(|s| s.recv(&mut [0; 16]))
/// }
///
/// # fn main() -> std::io::Result<()> {
/// let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
/// assert_eq!(take(socket.trusted()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
/// # Ok(())
/// # }
/// ```
pub struct Trusted<'a, T> {
    handle: &'a Async<T>,
}

impl<T> Clone for Trusted<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Trusted<'_, T> {}

impl<T> fmt::Debug for Trusted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trusted").field("readiness", &self.readiness()).finish_non_exhaustive()
    }
}

/// Defines the methods of one direction. `$other` names the counterpart in the other direction.
macro_rules! direction {
    (
        $direction:expr, $other:literal, $ready:literal,
        $poll:ident, $poll_up_to:ident, $run:ident, $try_once:ident, $poll_ready:ident, $until_ready:ident, $event:ident, $forget:ident, $presume_not:ident
    ) => {
        #[doc = concat!("Runs an operation, and again each time that the handle becomes ", $ready, ", until the operation returns something other than `WouldBlock`.")]
        ///
        /// If several tasks wait through the `poll_` methods of `Trusted` in one direction, only the last one
        /// is woken.
        ///
        #[doc = concat!("The counterpart of [`", $other, "`](Trusted::", $other, ").")]
        ///
        /// # Errors
        ///
        /// Returns the errors of the operation, except `WouldBlock` and `Interrupted`, and those of the
        /// poller.
        #[inline]
        pub fn $poll<R>(
            self,
            cx: &mut Context<'_>,
            mut op: impl FnMut(&T) -> io::Result<R>,
        ) -> Poll<io::Result<R>> {
            self.handle.source().poll_io($direction, cx, Displace::Quietly, || op(self.handle.get_ref()))
        }

        #[doc = concat!("Like [`", stringify!($poll), "`](Trusted::", stringify!($poll), "), for a transfer of bytes through a stream socket.")]
        ///
        /// A transfer of fewer than `full` bytes proves that no more can be moved, so the next transfer waits
        /// without a system call to find that out. The proof holds for TCP in both directions and for the
        /// writing side of a Unix stream, but not for pipes, files, terminals or the reading side of a Unix
        /// stream: there a message that carries descriptors ends a transfer early.
        ///
        /// # Errors
        ///
        #[doc = concat!("The same as for [`", stringify!($poll), "`](Trusted::", stringify!($poll), ").")]
        #[inline]
        pub fn $poll_up_to(
            self,
            cx: &mut Context<'_>,
            full: usize,
            mut op: impl FnMut(&T) -> io::Result<usize>,
        ) -> Poll<io::Result<usize>> {
            let full = full.min(SURE_BYTES);
            self.handle.source().poll_transfer($direction, cx, Displace::Quietly, full, || op(self.handle.get_ref()))
        }

        #[doc = concat!("Like [`", stringify!($poll), "`](Trusted::", stringify!($poll), "), as a future. Any number of tasks may wait at once.")]
        ///
        /// # Errors
        ///
        #[doc = concat!("The same as for [`", stringify!($poll), "`](Trusted::", stringify!($poll), ").")]
        ///
        /// # Cancel safety
        ///
        /// Between two runs of the operation the future holds no data of its own: dropping it loses only what
        /// the operation holds.
        pub async fn $run<R>(self, mut op: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
            self.handle.source().perform($direction, || op(self.handle.get_ref())).await
        }

        #[doc = concat!("Runs an operation once. If the handle is known not to be ", $ready, ", returns `WouldBlock` without running it. On threads outside of the handle's runtime, and on the portable path, that knowledge may be out of date, and the operation always runs.")]
        ///
        /// # Errors
        ///
        /// Returns the errors of the operation, and `WouldBlock`.
        pub fn $try_once<R>(self, op: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
            self.handle.source().try_once($direction, || op(self.handle.get_ref()))
        }

        #[doc = concat!("Waits until the handle is known to be ", $ready, ". The handle counts as ", $ready, " until an operation finds that it is not, or until a caller [forgets](Trusted::", stringify!($forget), ") it.")]
        ///
        /// # Errors
        ///
        /// Returns the errors of the poller.
        pub fn $poll_ready(self, cx: &mut Context<'_>) -> Poll<io::Result<Readiness>> {
            ready!(self.handle.source().poll_ready($direction, cx))?;
            Poll::Ready(Ok(self.readiness()))
        }

        #[doc = concat!("Like [`", stringify!($poll_ready), "`](Trusted::", stringify!($poll_ready), "), as a future. Any number of tasks may wait at once.")]
        ///
        /// # Errors
        ///
        /// Returns the errors of the poller.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait; nothing is lost.
        pub async fn $until_ready(self) -> io::Result<Readiness> {
            self.handle.source().ready($direction).await?;
            Ok(self.readiness())
        }

        #[doc = concat!("Waits for the next event after `seen` that may make the handle ", $ready, ", for a caller that looks for an error, an end or urgent data.")]
        ///
        /// # Errors
        ///
        /// Returns the errors of the poller.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait; nothing is lost.
        pub async fn $event(self, seen: Readiness) -> io::Result<Readiness> {
            self.handle.source().event($direction, seen.word).await?;
            Ok(self.readiness())
        }

        #[doc = concat!("Records that the handle is not ", $ready, ", because an operation made elsewhere returned `WouldBlock`. Events after `seen` are kept.")]
        pub fn $forget(self, seen: Readiness) {
            self.handle.source().forget($direction, seen.word);
        }

        #[doc = concat!("Takes back that a new handle counts as ", $ready, " until an operation finds otherwise, unless an event has reported that it is. Call this before the first operation.")]
        pub fn $presume_not(self) {
            self.handle.source().presume_not_ready($direction);
        }
    };
}

impl<T> Trusted<'_, T> {
    direction! {
        Direction::Read, "poll_write", "readable",
        poll_read, poll_read_up_to, read, try_read, poll_read_ready, read_ready, read_event, forget_read, presume_unreadable
    }

    direction! {
        Direction::Write, "poll_read", "writable",
        poll_write, poll_write_up_to, write, try_write, poll_write_ready, write_ready, write_event, forget_write, presume_unwritable
    }

    /// Returns what is known about the handle, without a wait. If an [end](Readiness::is_read_closed) was
    /// reported, this makes a system call to check whether it still holds.
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     // Both count as true until an operation finds otherwise.
    ///     assert!(socket.trusted().readiness().is_readable());
    ///     assert!(socket.trusted().try_read(|s| s.recv(&mut [0; 16])).is_err());
    ///     assert!(!socket.trusted().readiness().is_readable());
    ///
    ///     socket.send_to(b"to myself", socket.get_ref().local_addr()?).await?;
    ///     assert!(socket.trusted().read_ready().await?.is_readable());
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn readiness(self) -> Readiness {
        let (word, marks) = self.handle.source().known_to_hold();
        Readiness { word, marks }
    }

    /// Forgets that there was an error or urgent data, unless something was reported after `seen`.
    pub fn forget_marks(self, seen: Readiness) {
        self.handle.source().forget_marks(seen.marks);
    }
}

/// The state of a handle at one moment, as far as it is known: see [`Trusted::readiness`].
///
/// Epoll reports that a handle has ended or failed. On the portable path only an operation finds that out.
///
/// ```
/// use paceline::{Async, Readiness};
/// use std::net::{TcpListener, TcpStream};
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
///     let client = Async::<TcpStream>::connect(listener.get_ref().local_addr()?).await?;
///     drop(listener.accept().await?);
///     // Readable is what has not been found to be otherwise.
///     let seen = client.trusted().readiness();
///     client.trusted().forget_read(seen);
///     let ready: Readiness = client.trusted().read_ready().await?;
///     assert!(ready.is_readable());
///     # #[cfg(target_os = "linux")]
///     println!("{}", ready.is_read_closed());    // true on Linux
///     Ok(())
/// })
/// # }
/// ```
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
