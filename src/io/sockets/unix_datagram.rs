//! Unix datagram sockets: [`UnixDatagram`].
//!
//! In every path that names a socket, a leading zero byte on Linux and Android means the abstract namespace.

use crate::io::Async;
use crate::io::retry::retry;
use crate::io::sys;
use crate::reactor::Direction::{Read, Write};
use crate::simulated::sockets::{self, UNIX_DATAGRAM};
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

impl Async<UnixDatagram> {
    /// Creates a datagram socket at a path, which must not exist yet, or on Linux at an abstract name.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("paceline-datagram-{}", std::process::id()));
    /// let socket = Async::<UnixDatagram>::bind(&path)?;
    /// assert_eq!(socket.get_ref().local_addr()?.as_pathname(), Some(path.as_path()));
    /// std::fs::remove_file(path)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `bind`, such as `AddrInUse` for a path that exists, `InvalidInput` for one that
    /// is too long, and those of [`Async::new`].
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Async<UnixDatagram>> {
        let addr = sys::unix_address(path.as_ref())?;
        Async::new(sockets::datagrams(&addr, UnixDatagram::bind_addr)?)
    }

    /// Creates a datagram socket without a name: it can send, but no peer can answer.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let socket = Async::<UnixDatagram>::unbound()?;
    /// assert!(socket.get_ref().local_addr()?.is_unnamed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `socket` and of [`Async::new`].
    pub fn unbound() -> io::Result<Async<UnixDatagram>> {
        Async::new(sockets::socket(UNIX_DATAGRAM, UnixDatagram::unbound)?)
    }

    /// Creates two datagram sockets that are connected to each other.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (one, other) = Async::<UnixDatagram>::pair()?;
    /// paceline::block_on(async {
    ///     one.send(b"hello").await?;
    ///     assert_eq!(other.recv(&mut [0; 16]).await?, 5);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `socketpair` and of [`Async::new`].
    pub fn pair() -> io::Result<(Async<UnixDatagram>, Async<UnixDatagram>)> {
        let (one, other) = sockets::pair(false, UnixDatagram::pair)?;
        Ok((Async::new(one)?, Async::new(other)?))
    }

    /// Waits for a datagram and returns its length and its sender.
    ///
    /// Bytes that do not fit into the buffer are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (one, other) = Async::<UnixDatagram>::pair()?;
    /// paceline::block_on(async {
    ///     one.send(b"hello").await?;
    ///     let (n, sender) = other.recv_from(&mut [0; 16]).await?;
    ///     assert!(n == 5 && sender.is_unnamed());
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
        self.perform(Read, |socket| sockets::receive_from(socket, buf, false, UnixDatagram::recv_from)).await
    }

    /// Sends a datagram to the socket at a path, or on Linux at an abstract name, and returns the number of
    /// bytes sent.
    ///
    /// While the receiver's queue is full, the call retries without a pause, which keeps a thread busy: the
    /// operating system does not report when the queue of another socket has room. If the socket is connected
    /// to its receiver with [`UnixDatagram::connect`], the operating system does report it: use
    /// [`send`](Async::<UnixDatagram>::send).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("paceline-send-to-{}", std::process::id()));
    /// let receiver = Async::<UnixDatagram>::bind(&path)?;
    /// let sender = Async::<UnixDatagram>::unbound()?;
    /// paceline::block_on(async {
    ///     sender.send_to(b"hello", &path).await?;
    ///     assert_eq!(receiver.recv(&mut [0; 16]).await?, 5);
    ///     std::fs::remove_file(path)
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `sendto`, such as `NotFound` or `ConnectionRefused`, and `InvalidInput` for a
    /// path that is too long.
    ///
    /// # Cancel safety
    ///
    /// A datagram is sent in the same poll that returns its length: dropping the future before sends nothing.
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], path: P) -> io::Result<usize> {
        let addr = sys::unix_address(path.as_ref())?;
        // Here the kernel's `WouldBlock` is about the receiver's queue, but readiness is about this socket's
        // own buffer: no edge reports room in the receiver's queue, so interest is armed again for each try.
        let call = || sockets::send_to(self.get_ref(), buf, &addr, UnixDatagram::send_to_addr);
        retry(self.source(), Write, call).await
    }

    /// Waits for a datagram from the peer that the socket is connected to and returns its length.
    ///
    /// Bytes that do not fit into the buffer are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (one, other) = Async::<UnixDatagram>::pair()?;
    /// paceline::block_on(async {
    ///     one.send(b"hello").await?;
    ///     assert_eq!(other.recv(&mut [0; 16]).await?, 5);
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
    /// The same as for [`recv_from`](Async::<UnixDatagram>::recv_from).
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.perform(Read, |socket| sockets::receive(socket, buf, false, UnixDatagram::recv)).await
    }

    /// Sends a datagram to the peer that the socket is connected to and returns the number of bytes sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Async;
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (one, _other) = Async::<UnixDatagram>::pair()?;
    /// assert_eq!(paceline::block_on(one.send(b"hello"))?, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of `send`, such as `NotConnected`, or `ConnectionRefused` for a peer that is gone.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`send_to`](Async::<UnixDatagram>::send_to).
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.perform(Write, |socket| sockets::send(socket, buf, UnixDatagram::send)).await
    }
}
