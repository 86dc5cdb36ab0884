//! [`UnixSocket`]: a Unix socket before it listens or connects.

use std::io;
use std::path::Path;

use paceline::simulated_sockets as simulated;
use socket2::{Domain, SockAddr, Socket, Type};

use super::datagram::UnixDatagram;
use super::listener::UnixListener;
use super::stream::UnixStream;
use crate::net::sockets::{lends_its_descriptor, takes_descriptors};
use crate::net::sys;

/// A Unix socket that neither listens nor is connected.
#[derive(Debug)]
pub struct UnixSocket {
    inner: Socket,
}

lends_its_descriptor!(UnixSocket, |this| this.inner);
takes_descriptors!(UnixSocket);

impl UnixSocket {
    pub fn new_datagram() -> io::Result<UnixSocket> {
        Ok(UnixSocket { inner: sys::socket(Domain::UNIX, Type::DGRAM, None)? })
    }

    pub fn new_stream() -> io::Result<UnixSocket> {
        Ok(UnixSocket { inner: sys::socket(Domain::UNIX, Type::STREAM, None)? })
    }

    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let addr = SockAddr::unix(&path)?;
        simulated::bind(&self.inner, path.as_ref()).unwrap_or_else(|| self.inner.bind(&addr))
    }

    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.is_not(Type::DGRAM, "listen cannot be called on a datagram socket")?;
        let listened = simulated::listen(&self.inner, backlog as usize);
        listened.unwrap_or_else(|| self.inner.listen(i32::try_from(backlog).unwrap_or(i32::MAX)))?;
        UnixListener::of(self.inner)
    }

    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        self.is_not(Type::DGRAM, "connect cannot be called on a datagram socket")?;
        let addr = SockAddr::unix(path)?;
        UnixStream::connect_by(self.inner, &addr).await
    }

    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.is_not(Type::STREAM, "datagram cannot be called on a stream socket")?;
        UnixDatagram::of_socket(self.inner)
    }

    fn is_not(&self, kind: Type, else_: &'static str) -> io::Result<()> {
        if self.inner.r#type()? == kind { Err(io::Error::other(else_)) } else { Ok(()) }
    }
}
