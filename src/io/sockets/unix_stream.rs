//! Unix stream sockets: [`UnixListener`] and [`UnixStream`].
//!
//! In every path that names a socket, a leading zero byte on Linux and Android means the abstract namespace.

use crate::io::Async;
use crate::io::{errors, sys};
use crate::reactor::Direction::Read;
use crate::simulated::sockets::{self, STD_BACKLOG};
use futures::stream::{self, Stream};
use std::io;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

impl Async<UnixListener> {
    /// Creates a listener at a path, which must not exist yet, or on Linux at an abstract name.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("paceline-bind-{}", std::process::id()));
    /// let listener = Async::<UnixListener>::bind(&path)?;
    /// assert_eq!(listener.get_ref().local_addr()?.as_pathname(), Some(path.as_path()));
    /// std::fs::remove_file(path)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `bind` and `listen`, such as `AddrInUse` for a path that exists, `InvalidInput`
    /// for one that is too long, and those of [`Async::new`].
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Async<UnixListener>> {
        let addr = sys::unix_address(path.as_ref())?;
        Async::new(sockets::listener(&addr, STD_BACKLOG, UnixListener::bind_addr)?)
    }

    /// Waits for the next connection and returns its stream and its peer's address, which rarely has a name.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::future;
    /// use paceline::Async;
    /// use std::os::unix::net::{UnixListener, UnixStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("paceline-accept-{}", std::process::id()));
    /// let listener = Async::<UnixListener>::bind(&path)?;
    /// let ((_server, peer), _client) = paceline::block_on(future::try_zip(
    ///     listener.accept(),
    ///     Async::<UnixStream>::connect(&path),
    /// ))?;
    /// assert!(peer.is_unnamed());
    /// std::fs::remove_file(path)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `accept`, and those of `getpeername`, after which the connection is closed. The
    /// listener can still be used afterwards.
    ///
    /// # Cancel safety
    ///
    /// A connection is accepted in the same poll that returns it: dropping the future loses none. A
    /// [`Task`](crate::Task) differs from a future: if a task is cancelled during that poll, the connection
    /// is dropped with the task's output, which closes it.
    pub async fn accept(&self) -> io::Result<(Async<UnixStream>, SocketAddr)> {
        let stream = self.next_stream().await?;
        let peer = sockets::peer_addr(stream.get_ref()).unwrap_or_else(|| stream.get_ref().peer_addr())?;
        Ok((stream, peer))
    }

    /// Waits for the next connection, without asking for its peer's address.
    async fn next_stream(&self) -> io::Result<Async<UnixStream>> {
        let accept = |listener: &_| sockets::accept(listener, sys::accept_unix);
        Async::new_nonblocking(self.perform(Read, accept).await?)
    }

    /// Returns the connections as an endless stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::{StreamExt, future, pin};
    /// use paceline::Async;
    /// use std::os::unix::net::{UnixListener, UnixStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("paceline-incoming-{}", std::process::id()));
    /// let listener = Async::<UnixListener>::bind(&path)?;
    /// paceline::block_on(async {
    ///     let incoming = listener.incoming();
    ///     pin!(incoming);
    ///     let (next, _client) = future::zip(incoming.next(), Async::<UnixStream>::connect(&path)).await;
    ///     next.expect("the stream is endless")
    /// })?;
    /// std::fs::remove_file(path)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The items are those of [`accept`](Async::<UnixListener>::accept). An error does not end the stream.
    pub fn incoming(&self) -> impl Stream<Item = io::Result<Async<UnixStream>>> + Send + '_ {
        stream::unfold(self, |listener| async move { Some((listener.next_stream().await, listener)) })
    }
}

impl Async<UnixStream> {
    /// Connects to the listener at a path, or on Linux at an abstract name.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::{UnixListener, UnixStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("paceline-connect-{}", std::process::id()));
    /// let _listener = UnixListener::bind(&path)?;
    /// let stream = paceline::block_on(Async::<UnixStream>::connect(&path))?;
    /// assert_eq!(stream.get_ref().peer_addr()?.as_pathname(), Some(path.as_path()));
    /// std::fs::remove_file(path)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the operating system with their kind and code, such as `NotFound` or
    /// `ConnectionRefused`, and those of [`Async::new`]. A listener whose queue is full gives `NotConnected`:
    /// no event reports when the queue has room, so the caller decides when to try again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future abandons the attempt and closes the socket.
    pub async fn connect<P: AsRef<Path>>(path: P) -> io::Result<Async<UnixStream>> {
        sys::connect_unix(path.as_ref()).await.map_err(errors::not_connected)
    }

    /// Creates two streams that are connected to each other.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// use paceline::Async;
    /// use std::os::unix::net::UnixStream;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (mut one, mut other) = Async::<UnixStream>::pair()?;
    /// paceline::block_on(async {
    ///     one.write_all(b"hi").await?;
    ///     other.read_exact(&mut [0; 2]).await
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `socketpair` and of [`Async::new`].
    pub fn pair() -> io::Result<(Async<UnixStream>, Async<UnixStream>)> {
        let (one, other) = sockets::pair(true, UnixStream::pair)?;
        Ok((Async::new(one)?, Async::new(other)?))
    }
}
