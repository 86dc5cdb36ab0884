//! [`IoSafe`]: the promise that a handle keeps its descriptor while it is read or written.

use std::io::{Read, Write};

/// A promise that reading and writing never replaces or closes the handle's own descriptor.
///
/// An [`Async<T>`](crate::Async) is registered with a reactor by its descriptor. Its `AsyncRead` and
/// `AsyncWrite` pass `&mut self` to the inner `T`, with which a careless `T` could drop the descriptor and
/// open another one. The reactor would go on watching the number, which may name an unrelated file by then.
/// Handles of the standard library, and buffers around them, cannot do that and implement this trait.
///
/// # Safety
///
/// The implementations of [`Read`] and [`Write`] for this type must not drop, close or replace the descriptor
/// (on Windows the socket) that its `AsFd` or `AsSocket` lends out.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)] {
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use paceline::{Async, IoSafe};
/// use std::io::{self, Read};
/// use std::os::fd::{AsFd, BorrowedFd};
/// use std::os::unix::net::UnixStream;
///
/// /// Counts the bytes that were read.
/// struct Counted {
///     stream: UnixStream,
///     bytes: usize,
/// }
///
/// impl Read for Counted {
///     fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
///         let n = self.stream.read(buf)?;
///         self.bytes += n;
///         Ok(n)
///     }
/// }
///
/// impl AsFd for Counted {
///     fn as_fd(&self) -> BorrowedFd<'_> {
///         self.stream.as_fd()
///     }
/// }
///
/// // SAFETY: `read` uses the stream and never replaces it.
/// unsafe impl IoSafe for Counted {}
///
/// # fn main() -> io::Result<()> {
/// let (ours, theirs) = UnixStream::pair()?;
/// let mut reader = Async::new(Counted { stream: ours, bytes: 0 })?;
/// let mut writer = Async::new(theirs)?;
/// paceline::block_on(async {
///     writer.write_all(b"five!").await?;
///     reader.read_exact(&mut [0; 5]).await?;
///     assert_eq!(reader.get_ref().bytes, 5);
///     Ok(())
/// })
/// # }
/// # main().unwrap();
/// # }
/// ```
pub unsafe trait IoSafe {}

// SAFETY: a shared reference cannot move its referent's descriptor out.
unsafe impl<T: ?Sized> IoSafe for &T {}

// SAFETY: `read` and `write` are system calls on a descriptor that the handle keeps until it is dropped.
unsafe impl IoSafe for std::fs::File {}
// SAFETY: as for `File`.
unsafe impl IoSafe for std::net::TcpStream {}
// SAFETY: as for `File`.
#[cfg(unix)]
unsafe impl IoSafe for std::os::unix::net::UnixStream {}
// SAFETY: as for `File`.
unsafe impl IoSafe for std::process::ChildStdin {}
// SAFETY: as for `File`.
unsafe impl IoSafe for std::process::ChildStdout {}
// SAFETY: as for `File`.
unsafe impl IoSafe for std::process::ChildStderr {}
// SAFETY: as for `File`.
#[cfg(not(paceline_no_pipe))]
#[allow(clippy::incompatible_msrv, reason = "left out where the standard library lacks it")]
unsafe impl IoSafe for std::io::PipeReader {}
// SAFETY: as for `File`.
#[cfg(not(paceline_no_pipe))]
#[allow(clippy::incompatible_msrv, reason = "left out where the standard library lacks it")]
unsafe impl IoSafe for std::io::PipeWriter {}

// SAFETY: the standard streams are descriptors 0 to 2 for as long as the process lives; reading or writing
// through the handles does not change that.
unsafe impl IoSafe for std::io::Stdin {}
// SAFETY: as for `Stdin`.
unsafe impl IoSafe for std::io::Stdout {}
// SAFETY: as for `Stdin`.
unsafe impl IoSafe for std::io::Stderr {}
// SAFETY: as for `Stdin`.
unsafe impl IoSafe for std::io::StdinLock<'_> {}
// SAFETY: as for `Stdin`.
unsafe impl IoSafe for std::io::StdoutLock<'_> {}
// SAFETY: as for `Stdin`.
unsafe impl IoSafe for std::io::StderrLock<'_> {}

// SAFETY: a buffer reads and writes through the inner handle, which makes this promise, and never replaces
// it.
unsafe impl<T: IoSafe + Read> IoSafe for std::io::BufReader<T> {}
// SAFETY: as for `BufReader`.
unsafe impl<T: IoSafe + Write> IoSafe for std::io::BufWriter<T> {}
// SAFETY: as for `BufReader`.
unsafe impl<T: IoSafe + Write> IoSafe for std::io::LineWriter<T> {}

// SAFETY: reads and writes go straight to the referent, which makes this promise.
unsafe impl<T: IoSafe + ?Sized> IoSafe for &mut T {}
// SAFETY: as for `&mut T`.
unsafe impl<T: IoSafe + ?Sized> IoSafe for Box<T> {}
// SAFETY: as for `&mut T`; `Cow` itself neither reads nor writes.
unsafe impl<T: Clone + IoSafe> IoSafe for std::borrow::Cow<'_, T> {}
