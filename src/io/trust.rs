//! How far the outcome of a `read` or a `write` is evidence for the state of the descriptor.
//!
//! Waiting for the next edge is correct only if the descriptor is known to be drained (or full): an edge
//! reports what arrives, never what is there already. Only types whose `Read` and `Write` are known to be one
//! system call, or a buffer in front of one, are trusted. A type of another crate may return `WouldBlock` for
//! a reason of its own: a device that drops a packet which its filter rejects, for example, while the next
//! packet waits in the kernel.

use super::same_type::same_type;
use std::fs::File;
#[cfg(not(paceline_no_pipe))]
use std::io::{PipeReader, PipeWriter};
use std::io::{Stderr, Stdin, Stdout};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, ChildStdin, ChildStdout};

/// The outcomes that are taken as evidence that the descriptor is drained, or full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// None: each wait arms interest again.
    Nothing,
    /// `WouldBlock`, which comes from the kernel.
    WouldBlock,
    /// `WouldBlock`, and a transfer of fewer bytes than requested.
    ShortTransfer,
}

/// Returns which outcomes of `T`'s `read` are trusted.
///
/// A short read of a Unix stream does *not* prove that it is drained: the kernel ends a read after a message
/// that carries descriptors, and between messages of different senders, with more bytes queued. A short read
/// of a file does not either: the file may be a terminal, which returns one line at a time, a pipe that keeps
/// packets apart, or a device. A short read of a TCP stream does, unless an urgent mark ended it: the event
/// before reported that mark, and the reactor handles it.
pub(super) fn of_read<T: ?Sized>() -> Trust {
    if same_type::<T, TcpStream>() {
        Trust::ShortTransfer
    } else if same_type::<T, UnixStream>() || is_plain_handle::<T>() {
        Trust::WouldBlock
    } else {
        Trust::Nothing
    }
}

/// Returns which outcomes of `T`'s `write` are trusted.
///
/// A stream socket takes fewer bytes than given only if its send buffer is full. A pipe does not promise
/// that: it takes a small write completely or not at all.
pub(super) fn of_write<T: ?Sized>() -> Trust {
    if is_stream_socket::<T>() {
        Trust::ShortTransfer
    } else if is_plain_handle::<T>() {
        Trust::WouldBlock
    } else {
        Trust::Nothing
    }
}

/// Returns whether `T` is a stream socket of the standard library.
pub(super) fn is_stream_socket<T: ?Sized>() -> bool {
    same_type::<T, TcpStream>() || same_type::<T, UnixStream>()
}

/// Returns whether `T` is a handle of the standard library whose `WouldBlock` can only come from the kernel.
#[allow(clippy::incompatible_msrv, reason = "replaced where the standard library lacks it")]
fn is_plain_handle<T: ?Sized>() -> bool {
    same_type::<T, File>()
        || same_type::<T, ChildStdin>()
        || same_type::<T, ChildStdout>()
        || same_type::<T, ChildStderr>()
        || same_type::<T, Stdin>()
        || same_type::<T, Stdout>()
        || same_type::<T, Stderr>()
        || same_type::<T, PipeReader>()
        || same_type::<T, PipeWriter>()
}

/// Replaces a type that the platform lacks: no type equals this one.
#[cfg(not(unix))]
enum UnixStream {}

#[cfg(paceline_no_pipe)]
enum PipeReader {}

#[cfg(paceline_no_pipe)]
enum PipeWriter {}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::{Trust, of_read, of_write};
    use std::fs::File;
    use std::io::{BufReader, BufWriter};
    use std::net::TcpStream;

    #[test]
    fn a_tcp_stream_is_trusted_with_short_transfers() {
        assert_eq!(of_read::<TcpStream>(), Trust::ShortTransfer);
        assert_eq!(of_write::<TcpStream>(), Trust::ShortTransfer);
    }

    #[cfg(unix)]
    #[test]
    fn a_short_read_of_a_unix_stream_proves_nothing() {
        use std::os::unix::net::UnixStream;
        assert_eq!(of_read::<UnixStream>(), Trust::WouldBlock);
        assert_eq!(of_write::<UnixStream>(), Trust::ShortTransfer);
    }

    #[test]
    fn a_file_is_trusted_with_would_block_only() {
        assert_eq!(of_read::<File>(), Trust::WouldBlock);
        assert_eq!(of_write::<File>(), Trust::WouldBlock);
    }

    #[test]
    fn wrappers_and_strangers_are_not_trusted() {
        struct Stranger;
        assert_eq!(of_read::<BufReader<TcpStream>>(), Trust::Nothing);
        assert_eq!(of_write::<BufWriter<TcpStream>>(), Trust::Nothing);
        assert_eq!(of_read::<&TcpStream>(), Trust::Nothing);
        assert_eq!(of_read::<Stranger>(), Trust::Nothing);
        assert_eq!(of_write::<Stranger>(), Trust::Nothing);
    }
}
