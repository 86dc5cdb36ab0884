//! Sockets, each of which is one of the standard library's in the hands of a registration, `io/registration.rs`.
//!
//! | module | what it is |
//! |---|---|
//! | `addr` | [`ToSocketAddrs`], and looking names up |
//! | `tcp`, `udp`, [`unix`] | the sockets |
//! | `streams`, `halves`, `datagrams`, `sockets` | what several of them have in common |
//! | `transfer` | bytes from and to a socket, also into memory that nobody has written yet |
//! | `sys` | the system calls for that |

mod addr;
mod datagrams;
mod halves;
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

pub use addr::{ToSocketAddrs, lookup_host};
pub use tcp::listener::TcpListener;
pub use tcp::socket::TcpSocket;
pub use tcp::stream::TcpStream;
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{datagram::UnixDatagram, listener::UnixListener, socket::UnixSocket, stream::UnixStream};
