//! How far the outcome of a `read` or a `write` is trusted to tell the state of the descriptor behind it.
//!
//! A wait for the next edge is only right if the descriptor is known to be drained (or full): an edge announces what
//! comes, never what is there. Only types whose `Read` and `Write` are known to be one system call, or a buffer in
//! front of one, are trusted. A type that somebody else wrote may say `WouldBlock` on its own account, such as a
//! device that drops a packet which its filter rejects, while the next packet waits in the kernel.

use super::same_type::same_type;
use std::fs::File;
#[cfg(not(paceline_no_pipe))]
use std::io::{PipeReader, PipeWriter};
use std::io::{Stderr, Stdin, Stdout};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, ChildStdin, ChildStdout};

/// Which outcomes are trusted to say that the descriptor is drained, or full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// None: each wait arms interest again.
    Nothing,
    /// `WouldBlock`, which comes from the kernel.
    WouldBlock,
    /// `WouldBlock`, and a transfer of less than was asked for.
    ShortTransfer,
}

/// What of `T`'s `read` is trusted.
///
/// A short read of a Unix stream does *not* say that it is drained: the kernel ends a read behind a message that
/// carries descriptors, and between messages of different senders, with more queued. Nor does one of a file: behind it may
/// be a terminal, which gives a line at a time, a pipe that keeps packets apart, a device. A short read of a TCP stream
/// does, unless the event before it said that there is an urgent mark, which ends a read as well: the reactor sees to that.
pub(super) fn of_read<T: ?Sized>() -> Trust {
    if same_type::<T, TcpStream>() {
        Trust::ShortTransfer
    } else if same_type::<T, UnixStream>() || is_plain_handle::<T>() {
        Trust::WouldBlock
    } else {
        Trust::Nothing
    }
}

/// What of `T`'s `write` is trusted.
///
/// A stream socket takes less than it is given only when its send buffer is full. A pipe does not promise that: it
/// takes small writes whole or not at all.
pub(super) fn of_write<T: ?Sized>() -> Trust {
    if is_stream_socket::<T>() {
        Trust::ShortTransfer
    } else if is_plain_handle::<T>() {
        Trust::WouldBlock
    } else {
        Trust::Nothing
    }
}

/// Whether `T` is a stream socket of the standard library.
pub(super) fn is_stream_socket<T: ?Sized>() -> bool {
    same_type::<T, TcpStream>() || same_type::<T, UnixStream>()
}

/// Whether `T` is a handle of the standard library that gets a `WouldBlock` from nowhere but the kernel.
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

/// Stands in for a type that the platform lacks: nothing is the same type as this.
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
