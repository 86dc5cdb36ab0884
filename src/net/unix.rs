//! Unix sockets.
//!
//! In every path that names a socket, a leading zero byte on Linux and Android means the abstract namespace.
//! A listener does not remove its path: remove it before the next one is bound.

use std::io;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::acceptor::Acceptor;
use super::addresses::failed;
use super::socket::{handle, options};
use crate::io::Async;
use crate::simulated::sockets;

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
    acceptor: Arc<Acceptor>,
}

/// A Unix stream connection. Clones are the same connection. What is said about
/// [`TcpStream`](super::TcpStream) applies here as well.
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

handle!(UnixListener, std::os::unix::net::UnixListener, io, |io| Self { io, acceptor: Arc::default() });
handle!(UnixStream, std::os::unix::net::UnixStream, 0, Self);
handle!(UnixDatagram, std::os::unix::net::UnixDatagram, 0, Self);

/// Returns a function that adds the path and the operation to an error.
fn with(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| failed(what, vec![(format!("{path:?}"), error)])
}

impl UnixListener {
    /// Creates a listener at a path, which must not exist yet.
    ///
    /// # Errors
    ///
    /// Returns the errors of `bind` and `listen`, such as `AddrInUse` for a path that exists.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let path = path.as_ref();
        Async::<std::os::unix::net::UnixListener>::bind(path).map(Self::from).map_err(with(path, "listen on"))
    }

    /// Waits for the next connection, like [`TcpListener::accept`](super::TcpListener::accept).
    ///
    /// # Errors
    ///
    /// Returns the errors of `accept`. The listener can still be used afterwards.
    ///
    /// # Cancel safety
    ///
    /// A connection is accepted in the same poll that returns it: dropping the future loses none. A
    /// [`Task`](crate::Task) differs from a future: if a task is cancelled during that poll, the connection
    /// is dropped with the task's output, which closes it.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, peer) = self.acceptor.accept(|| self.io.accept()).await?;
        Ok((stream.into(), peer))
    }
}

impl UnixStream {
    /// Connects to the listener at a path.
    ///
    /// # Errors
    ///
    /// Returns the errors of `connect`, such as `NotFound` if the path does not exist and `ConnectionRefused`
    /// if there is no listener.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future abandons the attempt and closes the socket.
    pub async fn connect<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let path = path.as_ref();
        let stream = Async::<std::os::unix::net::UnixStream>::connect(path).await;
        stream.map(Self::from).map_err(with(path, "connect to"))
    }

    /// Creates two streams that are connected to each other.
    ///
    /// # Errors
    ///
    /// Returns the errors of `socketpair`.
    pub fn pair() -> io::Result<(Self, Self)> {
        Async::<std::os::unix::net::UnixStream>::pair().map(|(one, other)| (one.into(), other.into()))
    }
}

impl UnixDatagram {
    /// Creates a socket at a path, which must not exist yet.
    ///
    /// # Errors
    ///
    /// Returns the errors of `bind`, such as `AddrInUse` for a path that exists.
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let path = path.as_ref();
        Async::<std::os::unix::net::UnixDatagram>::bind(path).map(Self::from).map_err(with(path, "bind to"))
    }

    /// Creates a socket without a name.
    ///
    /// # Errors
    ///
    /// Returns the errors of `socket`.
    pub fn unbound() -> io::Result<Self> {
        Async::<std::os::unix::net::UnixDatagram>::unbound().map(Self::from)
    }

    /// Creates two sockets that are connected to each other.
    ///
    /// # Errors
    ///
    /// Returns the errors of `socketpair`.
    pub fn pair() -> io::Result<(Self, Self)> {
        Async::<std::os::unix::net::UnixDatagram>::pair().map(|(one, other)| (one.into(), other.into()))
    }

    /// Connects the socket to the socket at a path: [`send`](UnixDatagram::send) sends to it.
    ///
    /// # Errors
    ///
    /// Returns the errors of `connect`.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let path = path.as_ref();
        let connected = sockets::connect(self.0.get_ref(), path, std::os::unix::net::UnixDatagram::connect);
        connected.map_err(with(path, "connect to"))
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    ///
    /// Returns the errors of `send`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is sent in the same poll that returns.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.send(buf).await
    }

    /// Sends a datagram to the socket at a path. While the receiver's queue is full, the call keeps a thread
    /// busy; [`send`](UnixDatagram::send) after [`connect`](UnixDatagram::connect) does not.
    ///
    /// # Errors
    ///
    /// Returns the errors of `sendto`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is sent in the same poll that returns.
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], path: P) -> io::Result<usize> {
        let path = path.as_ref();
        self.0.send_to(buf, path).await.map_err(with(path, "send to"))
    }

    /// Receives a datagram. Bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recv`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is received in the same poll that returns.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buf).await
    }

    /// Receives a datagram and returns its length and its sender. Bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// The datagram is received in the same poll that returns.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buf).await
    }
}

options! { UnixListener.io:
    /// Returns the address that the listener is bound to.
    local_addr() -> SocketAddr = sockets::local_addr;
}

options! { UnixStream.0:
    /// Returns the local address.
    local_addr() -> SocketAddr = sockets::local_addr;
    /// Returns the address of the peer.
    peer_addr() -> SocketAddr = sockets::peer_addr;
}

options! { UnixDatagram.0:
    /// Returns the local address.
    local_addr() -> SocketAddr = sockets::local_addr;
    /// Returns the address of the peer.
    peer_addr() -> SocketAddr = sockets::peer_addr;
}
