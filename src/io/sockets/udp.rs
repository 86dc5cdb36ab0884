//! UDP: [`UdpSocket`].

use crate::io::Async;
use crate::reactor::Direction::{Read, Write};
use crate::simulated::sockets;
use std::io;
use std::net::{SocketAddr, UdpSocket};

impl Async<UdpSocket> {
    /// Creates a socket that is bound to a local address. With port 0 the operating system chooses the port.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    /// println!("bound to {}", socket.get_ref().local_addr()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `bind`, such as `AddrInUse`, and those of [`Async::new`].
    pub fn bind<A: Into<SocketAddr>>(addr: A) -> io::Result<Async<UdpSocket>> {
        Async::new(sockets::datagrams(addr.into(), UdpSocket::bind)?)
    }

    /// Waits for a datagram and returns its length and its sender.
    ///
    /// Bytes that do not fit into the buffer are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = socket.get_ref().local_addr()?;
    ///     socket.send_to(b"to myself", addr).await?;
    ///     let mut buf = [0; 16];
    ///     assert_eq!(socket.recv_from(&mut buf).await?, (9, addr));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// A datagram is received in the same poll that returns it: dropping the future loses none.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.perform(Read, |socket| sockets::receive_from(socket, buf, false, UdpSocket::recv_from)).await
    }

    /// Like [`recv_from`](Async::<UdpSocket>::recv_from), but leaves the datagram in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = socket.get_ref().local_addr()?;
    ///     socket.send_to(b"to myself", addr).await?;
    ///     let mut buf = [0; 16];
    ///     assert_eq!(socket.peek_from(&mut buf).await?, (9, addr));
    ///     assert_eq!(socket.recv_from(&mut buf).await?, (9, addr));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// No datagram is removed, so dropping the future loses none.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.perform(Read, |socket| sockets::receive_from(socket, buf, true, UdpSocket::peek_from)).await
    }

    /// Sends a datagram to an address and returns the number of bytes sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     let addr = socket.get_ref().local_addr()?;
    ///     assert_eq!(socket.send_to(b"ping", addr).await?, 4);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `sendto`.
    ///
    /// # Cancel safety
    ///
    /// A datagram is sent in the same poll that returns its length: dropping the future before sends nothing.
    pub async fn send_to<A: Into<SocketAddr>>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        let addr = addr.into();
        self.perform(Write, |socket| sockets::send_to(socket, buf, addr, UdpSocket::send_to)).await
    }

    /// Waits for a datagram from the peer that the socket is connected to and returns its length.
    ///
    /// Bytes that do not fit into the buffer are lost. The socket is connected with [`UdpSocket::connect`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.get_ref().connect(socket.get_ref().local_addr()?)?;
    ///     socket.send(b"to myself").await?;
    ///     assert_eq!(socket.recv(&mut [0; 16]).await?, 9);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `recv`: `ConnectionRefused` if the peer's host reported that no socket is bound
    /// to the port.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`recv_from`](Async::<UdpSocket>::recv_from).
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.perform(Read, |socket| sockets::receive(socket, buf, false, UdpSocket::recv)).await
    }

    /// Like [`recv`](Async::<UdpSocket>::recv), but leaves the datagram in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.get_ref().connect(socket.get_ref().local_addr()?)?;
    ///     socket.send(b"to myself").await?;
    ///     assert_eq!(socket.peek(&mut [0; 16]).await?, 9);
    ///     assert_eq!(socket.recv(&mut [0; 16]).await?, 9);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`recv`](Async::<UdpSocket>::recv).
    ///
    /// # Cancel safety
    ///
    /// No datagram is removed, so dropping the future loses none.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.perform(Read, |socket| sockets::receive(socket, buf, true, UdpSocket::peek)).await
    }

    /// Sends a datagram to the peer that the socket is connected to and returns the number of bytes sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::net::UdpSocket;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// paceline::block_on(async {
    ///     let socket = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
    ///     socket.get_ref().connect(socket.get_ref().local_addr()?)?;
    ///     assert_eq!(socket.send(b"ping").await?, 4);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `send`: `ConnectionRefused` if an earlier datagram reached a port to which no
    /// socket is bound.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`send_to`](Async::<UdpSocket>::send_to).
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.perform(Write, |socket| sockets::send(socket, buf, UdpSocket::send)).await
    }
}
