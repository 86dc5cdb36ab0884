//! The sockets of the standard library. Every operation on them is a system call of ours, whose `WouldBlock` is the
//! kernel's word, and waits for an edge; the one exception, `send_to` of a Unix datagram socket, says why.

mod tcp;
mod udp;
#[cfg(unix)]
mod unix_datagram;
#[cfg(unix)]
mod unix_stream;

use super::Async;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

/// Makes an [`Async`] of each of these by [`Async::new`].
macro_rules! try_from {
    ($($socket:ident),*) => {$(
        impl TryFrom<$socket> for Async<$socket> {
            type Error = io::Error;

            fn try_from(socket: $socket) -> io::Result<Self> {
                Async::new(socket)
            }
        }
    )*};
}

try_from!(TcpListener, TcpStream, UdpSocket);
#[cfg(unix)]
try_from!(UnixDatagram, UnixListener, UnixStream);
