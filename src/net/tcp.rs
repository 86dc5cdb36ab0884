//! TCP by name.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;

use super::accepting::{Accepting, Incoming};
use super::addresses::{ToSocketAddrs, try_each};
use super::streams::{handle, options};
use crate::io::{Async, timeout};

/// So many connections may wait for an accept, if the system allows it.
#[cfg(unix)]
const BACKLOG: i32 = 4096;

/// A listener for TCP connections.
///
/// Clones are the same listener; each connection goes to one of those that accept.
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
    accepting: Arc<Accepting>,
}

/// A TCP connection.
///
/// Reads and writes by the traits of `futures`, also by a reference. Clones are the same connection, of which one task at a time should
/// read, and one write: where several do, each wakes the others. `close` shuts the writing side down; see
/// [the module](super#closing).
///
/// Small writes wait for the peer's acknowledgement of those before (Nagle's algorithm), unless
/// [`set_nodelay`](TcpStream::set_nodelay) says otherwise.
#[derive(Clone, Debug)]
pub struct TcpStream(pub(super) Arc<Async<std::net::TcpStream>>);

handle!(TcpListener, std::net::TcpListener, io, |io| Self { io, accepting: Arc::default() });
handle!(TcpStream, std::net::TcpStream, 0, Self);

impl TcpListener {
    /// Listens on the first address of a name that can be bound; port 0 lets the system choose one.
    ///
    /// On Unix an address can be bound again at once after a listener on it was closed (`SO_REUSEADDR`), and 4096 connections may wait
    /// for an accept, if the system's limit (`net.core.somaxconn`) is not lower.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`](super::resolve), of `bind` (such as `AddrInUse`) and of `listen`.
    pub async fn bind<A: ToSocketAddrs>(name: A) -> io::Result<Self> {
        try_each(name, "listen on", |address| std::future::ready(Self::listen(address))).await
    }

    fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        // It listens already, with a queue that is as long as the standard library likes it.
        #[cfg(unix)]
        SockRef::from(&listener).listen(BACKLOG)?;
        Self::try_from(listener)
    }

    /// Waits for the next connection, and gives it with its peer's address.
    ///
    /// A connection that its peer has given up meanwhile is passed over. Where the limit of open files is reached, that is told
    /// once; later calls wait until there is room.
    ///
    /// # Errors
    ///
    /// Those of `accept`. The listener works on after them: in a loop that serves, print them and go on, for `?` would end the server.
    ///
    /// # Cancel safety
    ///
    /// A connection is taken in the very poll that returns it: dropping the future loses none.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.accepting.accept(|| self.io.accept()).await?;
        Ok((stream.into(), peer))
    }

    /// The connections as an endless stream: see [`accept`](TcpListener::accept).
    ///
    /// ```
    /// use paceline::net::{TcpListener, TcpStream};
    /// use paceline::prelude::*;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # paceline::block_on(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let _client = TcpStream::connect(listener.local_addr()?).await?;
    /// while let Some(stream) = listener.incoming().next().await {
    ///     let stream = stream?;
    ///     assert!(stream.peer_addr()?.ip().is_loopback());
    ///     # break;
    /// }
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming::new(move || async { self.accept().await.map(|(stream, _peer)| stream) })
    }
}

impl TcpStream {
    /// Connects to an address of a name: to the first one that answers, one after the other.
    ///
    /// For a limit, see [`connect_timeout`](TcpStream::connect_timeout).
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
    /// Those of [`resolve`](super::resolve), and of `connect`: of the last address, in kind, and of each in its message.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up and closes the socket.
    pub async fn connect<A: ToSocketAddrs>(name: A) -> io::Result<Self> {
        try_each(name, "connect to", Async::<std::net::TcpStream>::connect::<SocketAddr>)
            .await
            .map(Self::from)
    }

    /// The same, with a limit for each address: the next one is tried then.
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
    /// Those of [`connect`](TcpStream::connect), and [`TimedOut`](io::ErrorKind::TimedOut).
    ///
    /// # Cancel safety
    ///
    /// As for [`connect`](TcpStream::connect).
    pub async fn connect_timeout<A: ToSocketAddrs>(name: A, limit: Duration) -> io::Result<Self> {
        let attempt = |address: SocketAddr| async move {
            let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"));
            timeout(limit, Async::<std::net::TcpStream>::connect(address))
                .await
                .unwrap_or_else(|_| Err(late()))
        };
        try_each(name, "connect to", attempt).await.map(Self::from)
    }

    /// Reads bytes without taking them: the next read gives them again.
    ///
    /// # Errors
    ///
    /// Those of `recv`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken, so nothing is lost.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
    }

    /// How long what was written is kept for the peer after the last clone is dropped; `None` is as the system does.
    ///
    /// # Errors
    ///
    /// Those of `getsockopt`.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self.0.get_ref()).linger()
    }

    /// Sets how long what was written is kept for the peer after the last clone is dropped: zero resets the connection. A longer
    /// time may have the drop block for that long.
    ///
    /// # Errors
    ///
    /// Those of `setsockopt`.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self.0.get_ref()).set_linger(linger)
    }

    /// How many bytes the system keeps that have not been read. Linux reports twice what was asked for.
    ///
    /// # Errors
    ///
    /// Those of `getsockopt`.
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        SockRef::from(self.0.get_ref()).recv_buffer_size()
    }

    /// Asks for a buffer of so many bytes that have not been read.
    ///
    /// # Errors
    ///
    /// Those of `setsockopt`.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self.0.get_ref()).set_recv_buffer_size(bytes)
    }

    /// How many bytes the system keeps that the peer has not acknowledged. Linux reports twice what was asked for.
    ///
    /// # Errors
    ///
    /// Those of `getsockopt`.
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        SockRef::from(self.0.get_ref()).send_buffer_size()
    }

    /// Asks for a buffer of so many bytes that the peer has not acknowledged.
    ///
    /// # Errors
    ///
    /// Those of `setsockopt`.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self.0.get_ref()).set_send_buffer_size(bytes)
    }
}

options! { TcpListener.io:
    /// The address on which it listens.
    local_addr() -> SocketAddr;
    /// How many routers a packet may pass.
    ttl() -> u32;
    /// Sets how many routers a packet may pass, also those of connections that come.
    set_ttl(ttl: u32) -> ();
}

options! { TcpStream.0:
    /// The address of this side.
    local_addr() -> SocketAddr;
    /// The address of the other side. After the peer has reset the connection, `NotConnected`.
    peer_addr() -> SocketAddr;
    /// Whether small writes go out at once: see [`set_nodelay`](TcpStream::set_nodelay).
    nodelay() -> bool;
    /// Has small writes go out at once, rather than wait for the acknowledgement of those before.
    ///
    /// What sends one message in several writes, or answers requests that come in heaps, is faster with it.
    set_nodelay(nodelay: bool) -> ();
    /// How many routers a packet may pass.
    ttl() -> u32;
    /// Sets how many routers a packet may pass.
    set_ttl(ttl: u32) -> ();
}
