//! Windows: what the standard library offers, which has no connect that does not block.

use crate::io::async_handle::Async;
use futures::channel::oneshot;
use std::io;
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::windows::io::{AsRawSocket, BorrowedSocket, FromRawSocket};
use std::thread;

/// Windows's code for a handle that is no socket, or no longer one.
const WSAENOTSOCK: i32 = 10038;

/// Puts a socket in non-blocking mode.
pub(in crate::io) fn set_nonblocking(socket: BorrowedSocket<'_>) -> io::Result<()> {
    // SAFETY: the socket is open for as long as it is borrowed, and `ManuallyDrop` leaves it open. The type does not
    // matter: the one method called asks for nothing that only TCP has.
    let stream = ManuallyDrop::new(unsafe { TcpStream::from_raw_socket(socket.as_raw_socket()) });
    stream.set_nonblocking(true)
}

/// Whether an error says that there is no such socket.
pub(in crate::io) fn is_bad_handle(err: &io::Error) -> bool {
    err.raw_os_error() == Some(WSAENOTSOCK)
}

/// The next connection of a TCP listener, non-blocking.
pub(in crate::io) fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, peer))
}

/// Connects a new TCP socket, on a thread of its own until the peer has answered.
///
/// A caller that goes away leaves the thread to finish and close the socket.
pub(in crate::io) async fn connect_tcp(addr: SocketAddr) -> io::Result<Async<TcpStream>> {
    let (done, outcome) = oneshot::channel();
    thread::Builder::new().name("paceline-connect".into()).spawn(move || {
        // The caller may be gone: then nobody wants the socket.
        let _ = done.send(TcpStream::connect(addr));
    })?;
    let stream =
        outcome.await.map_err(|_| io::Error::other("the thread that was to connect has panicked"))??;
    Async::new(stream)
}
