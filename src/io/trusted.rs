//! [`Trusted`]: waiting for operations whose `WouldBlock` is the descriptor's own, and what is known about it.

use super::async_handle::Async;
use super::transfer::SURE_BYTES;
use crate::reactor::{Direction, Displace, Marks, Noted, Snapshot, Until};
use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

impl<T> Async<T> {
    /// The ways to wait for a handle of whose operations the caller promises this: they say `WouldBlock` only because the *descriptor*
    /// said so, and is drained or full. One system call of the standard library's or of your own is such an operation; one that reads
    /// through a buffer, or wants a whole message, is not, and hangs here: bytes that were there before are not announced again. That is
    /// what [`read_with`](Async::read_with) is for, which asks the system before each wait.
    ///
    /// In return nothing is asked twice: what is known about the descriptor is kept, and an operation that is known to be in vain is not tried.
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
/// | what | one task a direction, the last one | any number of tasks | without waiting |
/// |---|---|---|---|
/// | an operation | [`poll_read`](Trusted::poll_read), [`poll_write`](Trusted::poll_write) | [`read`](Trusted::read), [`write`](Trusted::write) | [`try_read`](Trusted::try_read), [`try_write`](Trusted::try_write) |
/// | a transfer of bytes | [`poll_read_up_to`](Trusted::poll_read_up_to), [`poll_write_up_to`](Trusted::poll_write_up_to) | | |
/// | readiness | [`poll_read_ready`](Trusted::poll_read_ready), [`poll_write_ready`](Trusted::poll_write_ready) | [`read_ready`](Trusted::read_ready), [`write_ready`](Trusted::write_ready) | [`readiness`](Trusted::readiness) |
///
/// Waits end with an error once the runtime is gone in which the handle was registered.
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

/// Both directions, of which the second is described as what the first is not.
macro_rules! direction {
    (
        $direction:expr, $other:literal, $ready:literal,
        $poll:ident, $poll_up_to:ident, $run:ident, $try_once:ident, $poll_ready:ident, $until_ready:ident, $event:ident, $forget:ident, $presume_not:ident
    ) => {
        #[doc = concat!("Runs an operation, and again each time that the handle becomes ", $ready, ", until it no longer says `WouldBlock`.")]
        ///
        /// Of the tasks that wait through the `poll_` methods of this in one direction the last one is remembered, and those before are not woken.
        ///
        #[doc = concat!("The counterpart of [`", $other, "`](Trusted::", $other, ").")]
        ///
        /// # Errors
        ///
        /// Those of the operation, except `WouldBlock` and `Interrupted`, and those of the poller.
        #[inline]
        pub fn $poll<R>(
            self,
            cx: &mut Context<'_>,
            mut op: impl FnMut(&T) -> io::Result<R>,
        ) -> Poll<io::Result<R>> {
            self.handle.source().poll_io($direction, cx, Displace::Quietly, || op(self.handle.get_ref()))
        }

        #[doc = concat!("[`", stringify!($poll), "`](Trusted::", stringify!($poll), "), for a transfer of bytes through a stream socket.")]
        ///
        /// One of fewer than `full` bytes proves that there is no more to be moved, so that the next one waits without a system call that
        /// says so. That is true of TCP in both directions and of a Unix stream's writing side, and not of pipes, files, terminals,
        /// or of a Unix stream's reading side, where a message that carries descriptors cuts a transfer short.
        ///
        /// # Errors
        ///
        #[doc = concat!("As for [`", stringify!($poll), "`](Trusted::", stringify!($poll), ").")]
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

        #[doc = concat!("[`", stringify!($poll), "`](Trusted::", stringify!($poll), ") as a future. Any number of tasks may wait at once.")]
        ///
        /// # Errors
        ///
        #[doc = concat!("As for [`", stringify!($poll), "`](Trusted::", stringify!($poll), ").")]
        ///
        /// # Cancel safety
        ///
        /// Between two runs of the operation nothing is held: dropping the future loses what the operation itself keeps.
        pub async fn $run<R>(self, mut op: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
            self.handle.source().perform($direction, || op(self.handle.get_ref())).await
        }

        #[doc = concat!("Runs an operation once, unless the handle is known not to be ", $ready, ": then it says `WouldBlock` without. On other threads than its runtime's, and on the portable path, what is known may be out of date, and it is run.")]
        ///
        /// # Errors
        ///
        /// Those of the operation; `WouldBlock`.
        pub fn $try_once<R>(self, op: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R> {
            self.handle.source().try_once($direction, || op(self.handle.get_ref()))
        }

        #[doc = concat!("Waits until the handle is ", $ready, ", as far as is known: it stays so until an operation finds that it is not, or until it is [forgotten](Trusted::", stringify!($forget), ").")]
        ///
        /// # Errors
        ///
        /// Those of the poller.
        pub fn $poll_ready(self, cx: &mut Context<'_>) -> Poll<io::Result<Readiness>> {
            ready!(self.handle.source().poll_ready($direction, cx))?;
            Poll::Ready(Ok(self.readiness()))
        }

        #[doc = concat!("[`", stringify!($poll_ready), "`](Trusted::", stringify!($poll_ready), ") as a future. Any number of tasks may wait at once.")]
        ///
        /// # Errors
        ///
        /// Those of the poller.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait; nothing is lost.
        pub async fn $until_ready(self) -> io::Result<Readiness> {
            self.handle.source().ready($direction).await?;
            Ok(self.readiness())
        }

        #[doc = concat!("Waits until something happens that may make the handle ", $ready, ", after `seen`: for who looks for an error, an end or something urgent.")]
        ///
        /// # Errors
        ///
        /// Those of the poller.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait; nothing is lost.
        pub async fn $event(self, seen: Readiness) -> io::Result<Readiness> {
            self.handle.source().event($direction, seen.word).await?;
            Ok(self.readiness())
        }

        #[doc = concat!("The handle is not ", $ready, " after all: an operation that was made elsewhere said `WouldBlock`. If something happened since `seen`, that is not forgotten.")]
        pub fn $forget(self, seen: Readiness) {
            self.handle.source().forget($direction, seen.word);
        }

        #[doc = concat!("A new handle counts as ", $ready, " until an operation finds otherwise. This one does not, from now on, unless an event has said so: for before the first operation.")]
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

    /// What is known about the handle, without a wait or a system call.
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
        let (word, marks) = self.handle.source().known();
        Readiness { word, marks }
    }

    /// The error has been seen to, or what was urgent. If something happened since `seen`, nothing is forgotten.
    pub fn forget_marks(self, seen: Readiness) {
        self.handle.source().forget_marks(seen.marks);
    }
}

/// What is known about a handle at one moment: see [`Trusted::readiness`].
///
/// That a handle has ended or failed is told by epoll; the portable path tells it by way of an operation only.
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
    word: Snapshot,
    marks: Noted,
}

impl Readiness {
    /// Something can be read, or an end or an error be found that way.
    pub fn is_readable(self) -> bool {
        self.word.has(Direction::Read, Until::Ready)
    }

    /// Something can be written, or an error be found that way.
    pub fn is_writable(self) -> bool {
        self.word.has(Direction::Write, Until::Ready)
    }

    /// Behind what is there to be read there is nothing more. It stays so.
    pub fn is_read_closed(self) -> bool {
        self.marks.has(Marks::READ_CLOSED)
    }

    /// Nothing can be written any more. It stays so.
    pub fn is_write_closed(self) -> bool {
        self.marks.has(Marks::WRITE_CLOSED)
    }

    /// There was an error to be collected.
    pub fn is_error(self) -> bool {
        self.marks.has(Marks::ERROR)
    }

    /// There was something urgent to be read.
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
