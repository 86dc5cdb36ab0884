//! Unix: sockets are made non-blocking, and closed on exec, as early as the platform allows.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "names_linux.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "names_plain.rs")]
mod names;
#[cfg_attr(paceline_socket_flags, path = "sockets_flagged.rs")]
#[cfg_attr(not(paceline_socket_flags), path = "sockets_plain.rs")]
mod sockets;

pub(in crate::io) use names::unix_address;
pub(in crate::io) use sockets::{accept_tcp, accept_unix};

use crate::io::async_handle::Async;
use crate::io::errors;
use crate::reactor::Direction;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, getpeername, ipproto, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
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
    connect(sockets::stream_socket(family, Some(ipproto::TCP))?, addr).await
}

/// Connects a new Unix stream socket.
pub(in crate::io) async fn connect_unix(path: &Path) -> io::Result<Async<UnixStream>> {
    let addr = names::to_kernel(path)?;
    connect(sockets::stream_socket(AddressFamily::UNIX, None)?, addr).await
}

/// Connects a new socket and waits until the peer has answered.
///
/// On Linux a Unix socket is connected at once. Over loopback the peer has answered, as a rule, by the time of the first
/// look, and there is nothing to wait for either.
async fn connect<T: AsFd + From<OwnedFd>>(socket: OwnedFd, addr: impl SocketAddrArg) -> io::Result<Async<T>> {
    let is_connected = match rustix::net::connect(&socket, &addr) {
        Ok(()) => true,
        // A signal does not stop the attempt: it goes on as if it were asynchronous.
        Err(Errno::INPROGRESS | Errno::INTR) => false,
        // Not "in progress": nothing was begun, and no event would ever come.
        Err(Errno::AGAIN) => return Err(errors::queue_full(Errno::AGAIN.into())),
        Err(err) => return Err(err.into()),
    };
    let stream = Async::new_nonblocking(T::from(socket))?;
    if !is_connected {
        stream.source().perform(Direction::Write, || connected(stream.get_ref())).await?;
    }
    Ok(stream)
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
