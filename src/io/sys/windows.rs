//! Windows: the calls of the standard library, which has no non-blocking connect.

use crate::io::async_handle::Async;
use futures::channel::oneshot;
use std::io;
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::windows::io::{AsRawSocket, BorrowedSocket, FromRawSocket};
use std::thread;

/// Windows's error code for a handle that is not a socket, or not any more.
const WSAENOTSOCK: i32 = 10038;

/// Puts a socket in non-blocking mode.
pub(in crate::io) fn set_nonblocking(socket: BorrowedSocket<'_>) -> io::Result<()> {
    // SAFETY: the socket is open while it is borrowed, and `ManuallyDrop` leaves it open. The wrong type is
    // harmless: `set_nonblocking` works on any socket.
    let stream = ManuallyDrop::new(unsafe { TcpStream::from_raw_socket(socket.as_raw_socket()) });
    stream.set_nonblocking(true)
}

/// Returns whether the error says that there is no such socket.
pub(in crate::io) fn is_bad_handle(err: &io::Error) -> bool {
    err.raw_os_error() == Some(WSAENOTSOCK)
}

/// Accepts a TCP connection and makes it non-blocking.
pub(in crate::io) fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(true)?;
    Ok((stream, peer))
}

/// Connects a new TCP socket on a thread that this starts, which blocks until the peer has answered or the
/// system gives up.
///
/// If the future is dropped, the thread finishes the attempt and closes the socket.
pub(in crate::io) async fn connect_tcp(addr: SocketAddr) -> io::Result<Async<TcpStream>> {
    let (done, outcome) = oneshot::channel();
    thread::Builder::new().name("paceline-connect".into()).spawn(move || {
        // An error means that the future was dropped, and the socket is closed here.
        let _ = done.send(TcpStream::connect(addr));
    })?;
    let stream =
        outcome.await.map_err(|_| io::Error::other("the thread that was to connect has panicked"))??;
    Async::new(stream)
}
