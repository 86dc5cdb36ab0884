//! TCP sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;

use super::acceptor::Acceptor;
use super::addresses::{ToSocketAddrs, try_each};
use super::socket::{handle, options};
use crate::io::{Async, timeout};
use crate::simulated::sockets;

/// The number of connections that may wait for an accept, if the system allows it.
const BACKLOG: u16 = 4096;

/// A listener for TCP connections.
///
/// Clones are the same listener; each connection goes to one of the callers that accept.
///
/// ```
/// use paceline::net::{TcpListener, TcpStream};
///
/// # fn main() -> std::io::Result<()> {
/// paceline::block_on(async {
///     let listener = TcpListener::bind("localhost:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let (server, peer) = listener.accept().await?;
///     assert_eq!((peer, server.peer_addr()?), (client.local_addr()?, client.local_addr()?));
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TcpListener {
    io: Arc<Async<std::net::TcpListener>>,
    acceptor: Arc<Acceptor>,
}

/// A TCP connection.
///
/// The stream is read and written through the traits of `futures`, also by reference. Clones are the same
/// connection. If several tasks read at once, each byte goes to one of them, in no certain order; so it is
/// with writes. Closing the stream shuts the writing side down: see [the module](super#closing).
///
/// Small writes wait until the peer has acknowledged earlier ones (Nagle's algorithm), unless
/// [`set_nodelay`](TcpStream::set_nodelay) turns that off.
#[derive(Clone, Debug)]
pub struct TcpStream(pub(super) Arc<Async<std::net::TcpStream>>);

handle!(TcpListener, std::net::TcpListener, io, |io| Self { io, acceptor: Arc::default() });
handle!(TcpStream, std::net::TcpStream, 0, Self);

impl TcpListener {
    /// Creates a listener on the first address of a name that can be bound. With port 0 the system chooses
    /// the port.
    ///
    /// On Unix an address can be bound again at once after a listener on it was closed (`SO_REUSEADDR`), and
    /// 4096 connections may wait for an accept, if the system's limit (`net.core.somaxconn`) is not lower.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`](super::resolve), of `bind` (such as `AddrInUse`) and of `listen`.
    pub async fn bind<A: ToSocketAddrs>(name: A) -> io::Result<Self> {
        try_each(name, "listen on", |address| std::future::ready(Self::listen(address))).await
    }

    /// Binds a listener to one address, on Unix with a queue of [`BACKLOG`] connections, and registers it.
    fn listen(address: SocketAddr) -> io::Result<Self> {
        let listen = |address| {
            let listener = std::net::TcpListener::bind(address)?;
            // The standard library calls `listen` with a queue length of its own: a second call changes that.
            #[cfg(unix)]
            SockRef::from(&listener).listen(BACKLOG.into())?;
            Ok(listener)
        };
        Self::try_from(sockets::listener(address, BACKLOG.into(), listen)?)
    }

    /// Waits for the next connection and returns it with its peer's address.
    ///
    /// A connection that its peer has given up meanwhile is skipped. If the limit on open files is reached,
    /// one call returns that error, and later calls wait until a connection can be accepted.
    ///
    /// # Errors
    ///
    /// Returns the errors of `accept`. The listener can still be used afterwards: in a server's loop, print
    /// the error and continue, because `?` would end the server.
    ///
    /// # Cancel safety
    ///
    /// A connection is accepted in the same poll that returns it: dropping the future loses none. A
    /// [`Task`](crate::Task) differs from a future: if a task is cancelled during that poll, the connection
    /// is dropped with the task's output, which closes it.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.acceptor.accept(|| self.io.accept()).await?;
        Ok((stream.into(), peer))
    }
}

impl TcpStream {
    /// Tries the addresses of a name one after the other, and returns the first connection.
    ///
    /// To set a limit, use [`connect_timeout`](TcpStream::connect_timeout).
    ///
    /// ```
    /// use paceline::net::TcpStream;
    ///
    /// let error = paceline::block_on(TcpStream::connect("127.0.0.1:1")).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    /// assert!(error.to_string().starts_with("cannot connect to 127.0.0.1:1: "));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`](super::resolve) and of `connect`. The error has the kind of the last
    /// address's error, and its text contains the errors of all addresses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future abandons the attempt and closes the socket.
    pub async fn connect<A: ToSocketAddrs>(name: A) -> io::Result<Self> {
        try_each(name, "connect to", Async::<std::net::TcpStream>::connect::<SocketAddr>)
            .await
            .map(Self::from)
    }

    /// Like [`connect`](TcpStream::connect), with a limit for each address, after which the next one is
    /// tried. The look-up of a host name has no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::net::{TcpListener, TcpStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # paceline::block_on(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// TcpStream::connect_timeout(listener.local_addr()?, Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`connect`](TcpStream::connect), and [`TimedOut`](io::ErrorKind::TimedOut).
    ///
    /// # Cancel safety
    ///
    /// The same as for [`connect`](TcpStream::connect).
    pub async fn connect_timeout<A: ToSocketAddrs>(name: A, limit: Duration) -> io::Result<Self> {
        let attempt = |address: SocketAddr| async move {
            let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"));
            timeout(limit, Async::<std::net::TcpStream>::connect(address))
                .await
                .unwrap_or_else(|_| Err(late()))
        };
        try_each(name, "connect to", attempt).await.map(Self::from)
    }

    /// Reads bytes without removing them: the next read returns them again.
    ///
    /// # Errors
    ///
    /// Returns the errors of `recv`.
    ///
    /// # Cancel safety
    ///
    /// No bytes are removed, so dropping the future loses none.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
    }

    /// Returns how long written bytes are kept for the peer after the last clone is dropped. With `None` the
    /// system decides.
    ///
    /// # Errors
    ///
    /// Returns the errors of `getsockopt`.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self.0.get_ref()).linger()
    }

    /// Sets how long written bytes are kept for the peer after the last clone is dropped. Zero resets the
    /// connection. With a longer time the drop may block for that long.
    ///
    /// # Errors
    ///
    /// Returns the errors of `setsockopt`.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self.0.get_ref()).set_linger(linger)
    }

    /// Returns how many received bytes the system keeps. Linux returns twice the number that was set.
    ///
    /// # Errors
    ///
    /// Returns the errors of `getsockopt`.
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        SockRef::from(self.0.get_ref()).recv_buffer_size()
    }

    /// Sets how many received bytes the system keeps.
    ///
    /// # Errors
    ///
    /// Returns the errors of `setsockopt`.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self.0.get_ref()).set_recv_buffer_size(bytes)
    }

    /// Returns how many bytes the system keeps until the peer has acknowledged them. Linux returns twice the
    /// number that was set.
    ///
    /// # Errors
    ///
    /// Returns the errors of `getsockopt`.
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        SockRef::from(self.0.get_ref()).send_buffer_size()
    }

    /// Sets how many bytes the system keeps until the peer has acknowledged them.
    ///
    /// # Errors
    ///
    /// Returns the errors of `setsockopt`.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self.0.get_ref()).set_send_buffer_size(bytes)
    }
}

options! { TcpListener.io:
    /// Returns the address that the listener is bound to.
    local_addr() -> SocketAddr = sockets::local_addr;
    /// Returns how many routers a packet may pass.
    ttl() -> u32;
    /// Sets how many routers a packet may pass, also for connections that are accepted later.
    set_ttl(ttl: u32) -> ();
}

options! { TcpStream.0:
    /// Returns the local address.
    local_addr() -> SocketAddr = sockets::local_addr;
    /// Returns the address of the peer. If the peer has reset the connection, the error is `NotConnected`.
    peer_addr() -> SocketAddr = sockets::peer_addr;
    /// Returns whether small writes are sent at once: see [`set_nodelay`](TcpStream::set_nodelay).
    nodelay() -> bool;
    /// Sets whether small writes are sent at once, instead of waiting until the peer has acknowledged earlier
    /// ones.
    ///
    /// Set this if one message is sent in several writes, or if requests arrive in batches.
    set_nodelay(nodelay: bool) -> ();
    /// Returns how many routers a packet may pass.
    ttl() -> u32;
    /// Sets how many routers a packet may pass.
    set_ttl(ttl: u32) -> ();
}
