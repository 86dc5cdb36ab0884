//! Sockets: each is a socket of the standard library in a registration, `io/registration.rs`.
//!
//! | module | what it is |
//! |---|---|
//! | `addr`, `lookup` | [`ToSocketAddrs`], and name look-ups |
//! | `tcp`, `udp`, [`unix`] | the sockets |
//! | `streams`, `halves`, `datagrams`, `sockets` | the common parts of several of them |
//! | `transfer` | bytes from and to a socket, also into uninitialised memory |
//! | `sys` | the system calls for that |

mod addr;
mod datagrams;
mod halves;
mod lookup;
mod sockets;
mod streams;
#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "sys_linux.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "sys_plain.rs")]
mod sys;
pub mod tcp;
mod transfer;
mod udp;
#[cfg(unix)]
pub mod unix;

pub use addr::ToSocketAddrs;
pub use lookup::lookup_host;
pub use tcp::listener::TcpListener;
pub use tcp::socket::TcpSocket;
pub use tcp::stream::TcpStream;
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{datagram::UnixDatagram, listener::UnixListener, socket::UnixSocket, stream::UnixStream};
