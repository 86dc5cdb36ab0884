//! Unix sockets.
//!
//! Wherever a path names a socket, a leading zero byte on Linux and Android means the abstract namespace. A listener leaves its path
//! behind: remove it before the next one is bound.

use std::io;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::accepting::{Accepting, Incoming};
use super::addresses::Failed;
use super::streams::{handle, options};
use crate::io::Async;

/// A listener for Unix stream connections. Clones are the same listener.
///
/// ```
/// use paceline::net::unix::{UnixListener, UnixStream};
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let path = std::env::temp_dir().join(format!("paceline-net-{}", std::process::id()));
///     let listener = UnixListener::bind(&path)?;
///     let _client = UnixStream::connect(&path).await?;
///     let (_server, peer) = listener.accept().await?;
///     assert!(peer.is_unnamed());
///     std::fs::remove_file(path)
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct UnixListener {
    io: Arc<Async<std::os::unix::net::UnixListener>>,
    accepting: Arc<Accepting>,
}

/// A Unix stream connection. Clones are the same connection; what holds for a [`TcpStream`](super::TcpStream) holds for it.
#[derive(Clone, Debug)]
pub struct UnixStream(pub(super) Arc<Async<std::os::unix::net::UnixStream>>);

/// A Unix datagram socket. Clones are the same socket.
///
/// ```
/// use paceline::net::unix::UnixDatagram;
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let (ours, theirs) = UnixDatagram::pair()?;
///     ours.send(b"hello").await?;
///     let mut buf = [0; 16];
///     assert_eq!(theirs.recv(&mut buf).await?, 5);
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct UnixDatagram(Arc<Async<std::os::unix::net::UnixDatagram>>);

handle!(UnixListener, std::os::unix::net::UnixListener, io, |io| Self { io, accepting: Arc::default() });
handle!(UnixStream, std::os::unix::net::UnixStream, 0, Self);
handle!(UnixDatagram, std::os::unix::net::UnixDatagram, 0, Self);

/// What was tried with a path, for an error.
fn with(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| Failed::error(what, vec![(format!("{path:?}"), error)])
}

impl UnixListener {
    /// Listens on a path, which must not exist yet.
    ///
    /// # Errors
    ///
    /// Those of `bind` and `listen`, such as `AddrInUse` for a path that exists.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let path = path.as_ref();
        Async::<std::os::unix::net::UnixListener>::bind(path).map(Self::from).map_err(with(path, "listen on"))
    }

    /// Waits for the next connection: as [`TcpListener::accept`](super::TcpListener::accept).
    ///
    /// # Errors
    ///
    /// Those of `accept`. The listener works on after them.
    ///
    /// # Cancel safety
    ///
    /// A connection is taken in the very poll that returns it: dropping the future loses none.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, peer) = self.accepting.accept(|| self.io.accept()).await?;
        Ok((stream.into(), peer))
    }

    /// The connections as an endless stream: see [`accept`](UnixListener::accept).
    pub fn incoming(&self) -> Incoming<'_, UnixStream> {
        Incoming::new(move || async { self.accept().await.map(|(stream, _peer)| stream) })
    }
}

impl UnixStream {
    /// Connects to the listener on a path.
    ///
    /// # Errors
    ///
    /// Those of `connect`, such as `NotFound` where there is no path and `ConnectionRefused` where nobody listens.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up and closes the socket.
    pub async fn connect<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let path = path.as_ref();
        let stream = Async::<std::os::unix::net::UnixStream>::connect(path).await;
        stream.map(Self::from).map_err(with(path, "connect to"))
    }

    /// Two streams that are connected with each other.
    ///
    /// # Errors
    ///
    /// Those of `socketpair`.
    pub fn pair() -> io::Result<(Self, Self)> {
        Async::<std::os::unix::net::UnixStream>::pair().map(|(one, other)| (one.into(), other.into()))
    }
}

impl UnixDatagram {
    /// A socket on a path, which must not exist yet.
    ///
    /// # Errors
    ///
    /// Those of `bind`, such as `AddrInUse` for a path that exists.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let path = path.as_ref();
        Async::<std::os::unix::net::UnixDatagram>::bind(path).map(Self::from).map_err(with(path, "bind to"))
    }

    /// A socket without a name.
    ///
    /// # Errors
    ///
    /// Those of `socket`.
    pub fn unbound() -> io::Result<Self> {
        Async::<std::os::unix::net::UnixDatagram>::unbound().map(Self::from)
    }

    /// Two sockets that are connected with each other.
    ///
    /// # Errors
    ///
    /// Those of `socketpair`.
    pub fn pair() -> io::Result<(Self, Self)> {
        Async::<std::os::unix::net::UnixDatagram>::pair().map(|(one, other)| (one.into(), other.into()))
    }

    /// Has [`send`](UnixDatagram::send) send to a path.
    ///
    /// # Errors
    ///
    /// Those of `connect`.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let path = path.as_ref();
        self.0.get_ref().connect(path).map_err(with(path, "connect to"))
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    ///
    /// Those of `send`.
    ///
    /// # Cancel safety
    ///
    /// It is sent in the very poll that returns.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.send(buf).await
    }

    /// Sends a datagram to a path.
    ///
    /// # Errors
    ///
    /// Those of `sendto`.
    ///
    /// # Cancel safety
    ///
    /// It is sent in the very poll that returns.
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], path: P) -> io::Result<usize> {
        let path = path.as_ref();
        self.0.send_to(buf, path).await.map_err(with(path, "send to"))
    }

    /// Receives a datagram. What does not fit into `buf` is lost.
    ///
    /// # Errors
    ///
    /// Those of `recv`.
    ///
    /// # Cancel safety
    ///
    /// It is taken in the very poll that returns.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buf).await
    }

    /// Receives a datagram, and says from whom. What does not fit into `buf` is lost.
    ///
    /// # Errors
    ///
    /// Those of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// It is taken in the very poll that returns.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buf).await
    }
}

options! { UnixListener.io:
    /// The address on which it listens.
    local_addr() -> SocketAddr;
}

options! { UnixStream.0:
    /// The address of this side.
    local_addr() -> SocketAddr;
    /// The address of the other side.
    peer_addr() -> SocketAddr;
}

options! { UnixDatagram.0:
    /// The address of this side.
    local_addr() -> SocketAddr;
    /// The address of the peer.
    peer_addr() -> SocketAddr;
}
