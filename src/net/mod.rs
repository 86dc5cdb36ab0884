//! TCP, UDP and Unix sockets by name, to be cloned, split and passed on.
//!
//! | I have | I want | with |
//! |---|---|---|
//! | `"localhost:80"`, `("localhost", 80)`, a `SocketAddr` | a connection | [`TcpStream::connect`] |
//! | `"0.0.0.0:8080"` | connections | [`TcpListener::bind`], [`accept`](TcpListener::accept) |
//! | one stream | to read and write it in two tasks | [`clone`](TcpStream::clone), [`split`](TcpStream::split), [`into_split`](TcpStream::into_split) |
//! | a name | its addresses | [`resolve`] |
//! | a socket of the standard library | one of these | `TryFrom` |
//! | one of these | what it is built on | `Arc<Async<_>>`, by `From` |
//!
//! Each is an [`Async`](crate::Async) behind an [`Arc`](std::sync::Arc): a clone is the same socket, which is closed when the last one is
//! dropped. Names are looked up on threads that [block](crate::blocking), never on a worker, and an address that is written in
//! numbers is not looked up at all.
//!
//! # Closing
//!
//! `close` of the streams, and the drop of an [`OwnedWriteHalf`], shut the writing side down: the peer reads to the end, and may
//! still answer. (`close` of an `Async<TcpStream>` only flushes, as its namesake's does.)
//!
//! # Errors
//!
//! Those of `bind`, `connect` and of a look-up say with which address or name, and have the system's kind; the system's own error is
//! their [source](std::error::Error::source).
//!
//! ```
//! use paceline::net::{TcpListener, TcpStream};
//! use paceline::prelude::*;
//!
//! # fn main() -> std::io::Result<()> {
//! paceline::block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let addr = listener.local_addr()?;
//!     let server = paceline::spawn(async move {
//!         let (mut stream, _peer) = listener.accept().await?;
//!         let mut question = String::new();
//!         stream.read_to_string(&mut question).await?;
//!         stream.write_all(question.to_uppercase().as_bytes()).await
//!     });
//!
//!     let mut stream = TcpStream::connect(addr).await?;
//!     stream.write_all(b"hello").await?;
//!     stream.close().await?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await?;
//!     assert_eq!(answer, "HELLO");
//!     server.await
//! })
//! # }
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `addresses` | [`ToSocketAddrs`], [`resolve`], and trying one address after the other |
//! | `accepting` | what an accept does about errors that are not the listener's |
//! | `streams` | what TCP and Unix streams have in common; their halves |
//! | `tcp`, `udp`, `unix` | the sockets |

mod accepting;
mod addresses;
mod streams;
mod tcp;
mod udp;
#[cfg(unix)]
pub mod unix;

pub use accepting::Incoming;
pub use addresses::{ToSocketAddrs, resolve};
pub use streams::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use tcp::{TcpListener, TcpStream};
pub use udp::UdpSocket;
