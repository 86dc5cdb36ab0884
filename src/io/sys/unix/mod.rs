//! Unix: a socket is made non-blocking and close-on-exec as early as the platform allows.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "names_linux.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "names_plain.rs")]
mod names;
#[cfg_attr(paceline_socket_flags, path = "sockets_flagged.rs")]
#[cfg_attr(not(paceline_socket_flags), path = "sockets_plain.rs")]
mod sockets;

pub(in crate::io) use names::unix_address;
pub(in crate::io) use sockets::{accept_tcp, accept_unix};

use crate::io::async_handle::Async;
use crate::reactor::Direction;
use crate::simulated::sockets as simulated;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, getpeername, ipproto, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Puts a descriptor in non-blocking mode, with one system call where `FIONBIO` works for every kind of
/// descriptor.
pub(in crate::io) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // A negative number is an error here. The system calls below would take it for a bug in their caller.
    if fd.as_raw_fd() < 0 {
        return Err(Errno::BADF.into());
    }
    // Miri supports `FIONBIO` for sockets only.
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

/// Returns whether the error says that there is no such descriptor.
pub(in crate::io) fn is_bad_handle(err: &io::Error) -> bool {
    err.raw_os_error() == Some(Errno::BADF.raw_os_error())
}

/// Connects a new TCP socket and waits until the peer has answered.
pub(in crate::io) async fn connect_tcp(addr: SocketAddr) -> io::Result<Async<TcpStream>> {
    let family = match addr {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let begin = |addr| connect(sockets::stream_socket(family, Some(ipproto::TCP))?, addr);
    connection(simulated::connecting(addr, begin)?).await
}

/// Connects a new Unix stream socket. If the queue of the listener is full, returns `WouldBlock`, and does
/// not wait for room.
pub(in crate::io) async fn connect_unix(path: &Path) -> io::Result<Async<UnixStream>> {
    let addr = names::to_kernel(path)?;
    let begin = |_| connect(sockets::stream_socket(AddressFamily::UNIX, None)?, addr);
    connection(simulated::connecting(path, begin)?).await
}

/// Begins to connect a socket. Returns it, and whether it is connected already. If no attempt has begun, as
/// for a Unix listener whose queue is full, returns `WouldBlock`.
///
/// On Linux a Unix socket is connected at once.
fn connect(socket: OwnedFd, addr: impl SocketAddrArg) -> io::Result<(OwnedFd, bool)> {
    match rustix::net::connect(&socket, &addr) {
        Ok(()) => Ok((socket, true)),
        // A signal does not stop the attempt: the kernel continues it asynchronously.
        Err(Errno::INPROGRESS | Errno::INTR) => Ok((socket, false)),
        // `AGAIN` does not mean "in progress": no attempt has begun, so no event would ever come.
        Err(err) => Err(err.into()),
    }
}

/// Waits until the peer has answered. Over loopback it usually has by the first check, and the future does
/// not wait.
async fn connection<T: AsFd + From<OwnedFd>>(
    (socket, is_connected): (OwnedFd, bool),
) -> io::Result<Async<T>> {
    let stream = Async::new_nonblocking(T::from(socket))?;
    if !is_connected {
        stream.perform(Direction::Write, |socket| simulated::connected(socket, connected)).await?;
    }
    Ok(stream)
}

/// Checks a socket that is connecting. Returns `WouldBlock` while the peer has not answered, and the error of
/// an attempt that has failed.
///
/// Writability alone does not prove a connection: the event may be spurious.
fn connected(socket: &impl AsFd) -> io::Result<()> {
    sockopt::socket_error(socket)??;
    match getpeername(socket) {
        Ok(_) => Ok(()),
        Err(Errno::NOTCONN | Errno::INPROGRESS) => Err(io::ErrorKind::WouldBlock.into()),
        Err(err) => Err(err.into()),
    }
}
