//! TCP: [`TcpListener`] and [`TcpStream`].

use crate::io::Async;
use crate::io::{errors, sys};
use crate::reactor::Direction::Read;
use crate::simulated::sockets::{self, STD_BACKLOG};
use futures::stream::{self, Stream};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

impl Async<TcpListener> {
    /// Creates a listener that is bound to a local address. With port 0 the operating system chooses the
    /// port.
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
    /// Returns the errors of `bind` and `listen`, such as `AddrInUse`, and those of [`Async::new`].
    pub fn bind<A: Into<SocketAddr>>(addr: A) -> io::Result<Async<TcpListener>> {
        Async::new(sockets::listener(addr.into(), STD_BACKLOG, TcpListener::bind)?)
    }

    /// Waits for the next connection and returns its stream and its peer's address.
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
    /// Returns the errors of `accept`. A connection that its peer gave up before it was accepted returns
    /// `ConnectionAborted`, and a process without free descriptors gets an error as well. The listener can
    /// still be used after both.
    ///
    /// # Cancel safety
    ///
    /// A connection is accepted in the same poll that returns it: dropping the future loses none. A
    /// [`Task`](crate::Task) differs from a future: if a task is cancelled during that poll, the connection
    /// is dropped with the task's output, which closes it.
    pub async fn accept(&self) -> io::Result<(Async<TcpStream>, SocketAddr)> {
        let accept = |listener: &_| sockets::accept(listener, sys::accept_tcp);
        let (stream, peer) = self.perform(Read, accept).await?;
        Ok((Async::new_nonblocking(stream)?, peer))
    }

    /// Returns the connections as an endless stream.
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
    /// The items are those of [`accept`](Async::<TcpListener>::accept). An error does not end the stream.
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
    /// Returns the errors of the operating system with their kind and code, such as `ConnectionRefused`,
    /// `TimedOut` or `NetworkUnreachable`, and those of [`Async::new`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future abandons the attempt and closes the socket.
    pub async fn connect<A: Into<SocketAddr>>(addr: A) -> io::Result<Async<TcpStream>> {
        sys::connect_tcp(addr.into()).await.map_err(errors::not_connected)
    }

    /// Reads bytes without removing them: the next read returns them again.
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
    /// Returns the errors of `recv`.
    ///
    /// # Cancel safety
    ///
    /// No bytes are removed, so dropping the future loses none.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.perform(Read, |socket| sockets::receive(socket, buf, true, TcpStream::peek)).await
    }
}
