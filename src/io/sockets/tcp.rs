//! TCP: [`TcpListener`] and [`TcpStream`].

use crate::io::Async;
use crate::io::sys;
use crate::reactor::Direction;
use futures::stream::{self, Stream};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

impl Async<TcpListener> {
    /// Opens a listener on a local address; port 0 lets the operating system choose one.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::TcpListener;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    /// println!("listening on {}", listener.get_ref().local_addr()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `bind` and `listen`, such as `AddrInUse`, and those of [`Async::new`].
    pub fn bind<A: Into<SocketAddr>>(addr: A) -> io::Result<Async<TcpListener>> {
        Async::new(TcpListener::bind(addr.into())?)
    }

    /// Waits for the next connection and gives its stream and its peer's address.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::future;
    /// use paceline::Async;
    /// use std::net::{TcpListener, TcpStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = listener.get_ref().local_addr()?;
    ///     let ((_server, peer), client) =
    ///         future::try_zip(listener.accept(), Async::<TcpStream>::connect(addr)).await?;
    ///     assert_eq!(peer, client.get_ref().local_addr()?);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `accept`. A connection that its peer gave up before it was accepted gives `ConnectionAborted`, and a
    /// process without free descriptors an error as well; the listener works on after both.
    ///
    /// # Cancel safety
    ///
    /// A connection is taken in the very poll that returns it: dropping the future loses none.
    pub async fn accept(&self) -> io::Result<(Async<TcpStream>, SocketAddr)> {
        let (stream, peer) =
            self.source().perform(Direction::Read, || sys::accept_tcp(self.get_ref())).await?;
        Ok((Async::new_nonblocking(stream)?, peer))
    }

    /// The connections as an endless stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::{StreamExt, future, pin};
    /// use paceline::Async;
    /// use std::net::{TcpListener, TcpStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = listener.get_ref().local_addr()?;
    ///     let incoming = listener.incoming();
    ///     pin!(incoming);
    ///     let (next, _client) = future::zip(incoming.next(), Async::<TcpStream>::connect(addr)).await;
    ///     next.expect("the stream is endless")?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Its items are those of [`accept`](Async::<TcpListener>::accept). An error does not end the stream.
    pub fn incoming(&self) -> impl Stream<Item = io::Result<Async<TcpStream>>> + Send + '_ {
        stream::unfold(self, |listener| async move {
            let next = listener.accept().await.map(|(stream, _peer)| stream);
            Some((next, listener))
        })
    }
}

impl Async<TcpStream> {
    /// Connects to an address.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::{TcpListener, TcpStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let addr = listener.local_addr()?;
    /// let stream = paceline::block_on(Async::<TcpStream>::connect(addr))?;
    /// assert_eq!(stream.get_ref().peer_addr()?, addr);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The operating system's own, kind and code, such as `ConnectionRefused`, `TimedOut` or `NetworkUnreachable`,
    /// and those of [`Async::new`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up and closes the socket.
    pub async fn connect<A: Into<SocketAddr>>(addr: A) -> io::Result<Async<TcpStream>> {
        sys::connect_tcp(addr.into()).await
    }

    /// Reads bytes without taking them: the next read gives them again.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
    /// use paceline::Async;
    /// use std::net::{TcpListener, TcpStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = listener.get_ref().local_addr()?;
    ///     let ((mut server, _), mut client) =
    ///         future::try_zip(listener.accept(), Async::<TcpStream>::connect(addr)).await?;
    ///
    ///     client.write_all(b"\x16 looks like TLS").await?;
    ///     let mut first = [0];
    ///     server.peek(&mut first).await?;
    ///     assert_eq!(first, [0x16]);
    ///     server.read_exact(&mut first).await?;
    ///     assert_eq!(first, [0x16]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `recv`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken, so nothing is lost.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.source().perform(Direction::Read, || self.get_ref().peek(buf)).await
    }
}
