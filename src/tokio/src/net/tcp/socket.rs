//! [`TcpSocket`]: a TCP socket before it listens or connects.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::time::Duration;

use paceline::simulated_sockets as simulated;
use socket2::{Domain, Protocol, Socket, Type};

use super::listener::TcpListener;
use super::stream::TcpStream;
use crate::net::sockets::{lends_its_descriptor, options, socket_options};
use crate::net::sys;

/// A TCP socket that neither listens nor is connected.
pub struct TcpSocket {
    inner: Socket,
}

impl TcpSocket {
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV4)
    }

    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<TcpSocket> {
        Ok(TcpSocket { inner: sys::socket(domain, Type::STREAM, Some(Protocol::TCP))? })
    }

    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.inner.send_buffer_size().map(|size| size as u32)
    }

    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.inner.set_send_buffer_size(size as usize)
    }

    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.inner.recv_buffer_size().map(|size| size as u32)
    }

    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.inner.set_recv_buffer_size(size as usize)
    }

    #[deprecated = "`SO_LINGER` causes the socket to block the thread on drop"]
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.inner.set_linger(dur)
    }

    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.inner.set_linger(Some(Duration::ZERO))
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let not_ip =
            || io::Error::new(io::ErrorKind::InvalidInput, "invalid address family (not IPv4 or IPv6)");
        if let Some(addr) = simulated::local_addr(&self.inner) {
            return addr;
        }
        self.inner.local_addr()?.as_socket().ok_or_else(not_ip)
    }

    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        simulated::bind(&self.inner, addr).unwrap_or_else(|| self.inner.bind(&addr.into()))
    }

    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect_by(self.inner, addr).await
    }

    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let listened = simulated::listen(&self.inner, backlog as usize);
        listened.unwrap_or_else(|| self.inner.listen(i32::try_from(backlog).unwrap_or(i32::MAX)))?;
        TcpListener::of(self.inner)
    }

    pub fn from_std_stream(stream: net::TcpStream) -> TcpSocket {
        TcpSocket::of(stream.into())
    }

    fn of(inner: Socket) -> TcpSocket {
        simulated::adopt(&inner);
        TcpSocket { inner }
    }
}

options! {
    TcpSocket, |this| this.inner;
    keepalive() -> bool = keepalive;
    set_keepalive(keepalive: bool) -> () = set_keepalive;
    reuseaddr() -> bool = reuse_address;
    set_reuseaddr(reuseaddr: bool) -> () = set_reuse_address;
    linger() -> Option<Duration> = linger;
    nodelay() -> bool = tcp_nodelay;
    set_nodelay(nodelay: bool) -> () = set_tcp_nodelay;
    take_error() -> Option<io::Error> = take_error, simulated::take_error;
}

#[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin"))))]
options! {
    TcpSocket, |this| this.inner;
    reuseport() -> bool = reuse_port;
    set_reuseport(reuseport: bool) -> () = set_reuse_port;
}

socket_options!(TcpSocket, |this| this.inner);
lends_its_descriptor!(TcpSocket, |this| this.inner);

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[cfg(unix)]
crate::net::sockets::takes_descriptors!(TcpSocket);

#[cfg(windows)]
impl std::os::windows::io::FromRawSocket for TcpSocket {
    unsafe fn from_raw_socket(socket: std::os::windows::io::RawSocket) -> TcpSocket {
        // SAFETY: the caller keeps the promises of `from_raw_socket`.
        TcpSocket::of(unsafe { std::os::windows::io::FromRawSocket::from_raw_socket(socket) })
    }
}

#[cfg(windows)]
impl std::os::windows::io::IntoRawSocket for TcpSocket {
    fn into_raw_socket(self) -> std::os::windows::io::RawSocket {
        std::os::windows::io::IntoRawSocket::into_raw_socket(self.inner)
    }
}
