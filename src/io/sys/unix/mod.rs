//! Unix: sockets are made non-blocking, and closed on exec, as early as the platform allows.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "names_linux.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "names_plain.rs")]
mod names;
#[cfg_attr(
    any(
        target_os = "android",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "fuchsia",
        target_os = "illumos",
        target_os = "linux",
        target_os = "netbsd",
        target_os = "openbsd",
    ),
    path = "sockets_flagged.rs"
)]
#[cfg_attr(
    not(any(
        target_os = "android",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "fuchsia",
        target_os = "illumos",
        target_os = "linux",
        target_os = "netbsd",
        target_os = "openbsd",
    )),
    path = "sockets_plain.rs"
)]
mod sockets;

pub(in crate::io) use names::unix_address;
pub(in crate::io) use sockets::{accept_tcp, accept_unix};

use crate::io::async_handle::Async;
use crate::io::errors;
use crate::reactor::Direction;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, connect, getpeername, ipproto, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Puts a descriptor in non-blocking mode, in one system call where the platform's `FIONBIO` can be relied on for
/// every kind of descriptor.
pub(in crate::io) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // No descriptor is negative. To the system calls below that would be a bug in the caller, not an error.
    if fd.as_raw_fd() < 0 {
        return Err(Errno::BADF.into());
    }
    // Miri has it for sockets only.
    if cfg!(all(target_os = "linux", not(miri))) {
        rustix::io::ioctl_fionbio(fd, true)?;
    } else {
        let flags = rustix::fs::fcntl_getfl(fd)?;
        if !flags.contains(rustix::fs::OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?;
        }
    }
    Ok(())
}

/// Whether an error says that there is no such descriptor.
pub(in crate::io) fn is_bad_handle(err: &io::Error) -> bool {
    err.raw_os_error() == Some(Errno::BADF.raw_os_error())
}

/// Connects a new TCP socket.
pub(in crate::io) async fn connect_tcp(addr: SocketAddr) -> io::Result<Async<TcpStream>> {
    let family = match addr {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = sockets::stream_socket(family, Some(ipproto::TCP))?;
    let progress = begin_connect(&socket, &addr)?;
    let stream = Async::new_nonblocking(TcpStream::from(socket))?;
    finish_connect(progress, &stream).await?;
    Ok(stream)
}

/// Connects a new Unix stream socket.
pub(in crate::io) async fn connect_unix(path: &Path) -> io::Result<Async<UnixStream>> {
    let addr = names::to_kernel(path)?;
    let socket = sockets::stream_socket(AddressFamily::UNIX, None)?;
    let progress = begin_connect(&socket, &addr)?;
    let stream = Async::new_nonblocking(UnixStream::from(socket))?;
    finish_connect(progress, &stream).await?;
    Ok(stream)
}

/// How far a `connect` has come.
#[derive(Clone, Copy)]
enum Progress {
    /// The socket is connected, as a Unix socket is at once on Linux.
    Done,
    /// The peer has not answered yet.
    Begun,
}

fn begin_connect(socket: impl AsFd, addr: &impl SocketAddrArg) -> io::Result<Progress> {
    match connect(socket, addr) {
        Ok(()) => Ok(Progress::Done),
        // A signal does not stop the attempt: it goes on as if it were asynchronous.
        Err(Errno::INPROGRESS | Errno::INTR) => Ok(Progress::Begun),
        // Not "in progress": nothing was begun, and no event would ever come.
        Err(Errno::AGAIN) => Err(errors::queue_full(Errno::AGAIN.into())),
        Err(err) => Err(err.into()),
    }
}

/// Waits until the peer has answered.
///
/// Over loopback it has, as a rule, by the time of the first look, and there is nothing to wait for.
async fn finish_connect<T: AsFd>(progress: Progress, stream: &Async<T>) -> io::Result<()> {
    match progress {
        Progress::Done => Ok(()),
        Progress::Begun => stream.source().perform(Direction::Write, || connected(stream.get_ref())).await,
    }
}

/// Looks at a socket that is connecting; `WouldBlock` while the peer has not answered.
///
/// Being writable is not enough of an answer: a spurious event would pass for a connection.
fn connected(socket: impl AsFd) -> io::Result<()> {
    sockopt::socket_error(&socket)??;
    match getpeername(&socket) {
        Ok(_) => Ok(()),
        Err(Errno::NOTCONN | Errno::INPROGRESS) => Err(io::ErrorKind::WouldBlock.into()),
        Err(err) => Err(err.into()),
    }
}
