//! Unix datagram sockets: [`UnixDatagram`].
//!
//! Wherever a path names a socket, a leading zero byte on Linux and Android means the abstract namespace.

use crate::io::Async;
use crate::io::retry::retry;
use crate::io::sys;
use crate::reactor::Direction;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

impl Async<UnixDatagram> {
    /// Opens a datagram socket on a path, which must not exist yet, or on Linux on an abstract name.
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
    /// Those of `bind`, such as `AddrInUse` for a path that exists, `InvalidInput` for one that is too long, and
    /// those of [`Async::new`].
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Async<UnixDatagram>> {
        Async::new(UnixDatagram::bind_addr(&sys::unix_address(path.as_ref())?)?)
    }

    /// Opens a datagram socket without a name: it sends, and nobody can answer.
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
    /// Those of `socket` and of [`Async::new`].
    pub fn unbound() -> io::Result<Async<UnixDatagram>> {
        Async::new(UnixDatagram::unbound()?)
    }

    /// Two datagram sockets that are connected to each other.
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
    /// Those of `socketpair` and of [`Async::new`].
    pub fn pair() -> io::Result<(Async<UnixDatagram>, Async<UnixDatagram>)> {
        let (one, other) = UnixDatagram::pair()?;
        Ok((Async::new(one)?, Async::new(other)?))
    }

    /// Waits for a datagram and gives its length and its sender.
    ///
    /// What does not fit the buffer is lost.
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
    /// Those of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// A datagram is taken in the very poll that returns it: dropping the future loses none.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source().perform(Direction::Read, || self.get_ref().recv_from(buf)).await
    }

    /// Sends a datagram to the socket at a path, or on Linux at an abstract name, and gives the number of bytes sent.
    ///
    /// A receiver whose queue is full is asked again and again, which keeps a thread busy: the operating system does
    /// not tell when somebody else's queue has room. A socket that is connected to its receiver, with
    /// [`UnixDatagram::connect`] and [`send`](Async::<UnixDatagram>::send), is told.
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
    /// Those of `sendto`, such as `NotFound` or `ConnectionRefused`, and `InvalidInput` for a path that is too long.
    ///
    /// # Cancel safety
    ///
    /// A datagram is sent in the very poll that says so: dropping the future before sends nothing.
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], path: P) -> io::Result<usize> {
        let addr = sys::unix_address(path.as_ref())?;
        // Here the kernel's `WouldBlock` speaks of the receiver's queue, and readiness of our own buffer: an edge
        // that tells of room in the former never comes, so interest is armed again for each try.
        retry(self.source(), Direction::Write, || self.get_ref().send_to_addr(buf, &addr)).await
    }

    /// Waits for a datagram from the peer that the socket is connected to, and gives its length.
    ///
    /// What does not fit the buffer is lost.
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
    /// Those of `recv`.
    ///
    /// # Cancel safety
    ///
    /// As for [`recv_from`](Async::<UnixDatagram>::recv_from).
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.source().perform(Direction::Read, || self.get_ref().recv(buf)).await
    }

    /// Sends a datagram to the peer that the socket is connected to, and gives the number of bytes sent.
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
    /// Those of `send`, such as `NotConnected`, or `ConnectionRefused` for a peer that is gone.
    ///
    /// # Cancel safety
    ///
    /// As for [`send_to`](Async::<UnixDatagram>::send_to).
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.source().perform(Direction::Write, || self.get_ref().send(buf)).await
    }
}
