//! The socket types of the standard library. Every operation here is one system call, whose `WouldBlock`
//! comes from the kernel, and then waits for an edge. The exception is `send_to` of a Unix datagram socket:
//! see there.

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

/// Implements `TryFrom` by [`Async::new`] for each socket type.
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
