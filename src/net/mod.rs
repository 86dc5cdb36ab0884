//! TCP, UDP and Unix sockets, which are addressed by name and can be cloned, split and passed on.
//!
//! | I have | I want | with |
//! |---|---|---|
//! | `"localhost:80"`, `("localhost", 80)`, a `SocketAddr` | a connection | [`TcpStream::connect`] |
//! | `"0.0.0.0:8080"` | connections | [`TcpListener::bind`], [`accept`](TcpListener::accept) |
//! | one stream | a task for each direction | [`clone`](TcpStream::clone), [`split`](TcpStream::split) |
//! | a name | its addresses | [`resolve`] |
//! | a socket of the standard library | a socket of this module | `TryFrom` |
//! | a socket of this module | the `Arc<Async<_>>` inside | `From` |
//!
//! Each type is an [`Async`](crate::Async) behind an [`Arc`](std::sync::Arc): a clone is the same socket,
//! which is closed when the last clone is dropped. Host names are looked up on threads that [may
//! block](crate::blocking), never on a worker. A numeric address is not looked up at all.
//!
//! # Closing
//!
//! Closing a stream (`AsyncWrite::poll_close`) and dropping an [`OwnedWriteHalf`] shut the writing side down:
//! the peer reads to the end, and may still answer. (Closing an `Async<TcpStream>` only flushes, as in
//! `async-io`.)
//!
//! # Errors
//!
//! The errors of `bind`, of `connect` and of a look-up name the address. Each has the kind of the system's
//! error, which is its [source](std::error::Error::source). The `raw_os_error` is `None`, because an
//! [`io::Error`](std::io::Error) has either a code or a text. The code is in one of the sources:
//!
//! ```
//! use std::error::Error;
//! use std::{io, iter};
//! use paceline::net::TcpStream;
//!
//! # paceline::block_on(async {
//! let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
//! assert_eq!((error.kind(), error.raw_os_error()), (io::ErrorKind::ConnectionRefused, None));
//!
//! let mut errors = iter::successors(Some(&error as &(dyn Error + 'static)), |&error| error.source());
//! let code = errors.find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error()).unwrap();
//! assert_eq!(io::Error::from_raw_os_error(code).kind(), io::ErrorKind::ConnectionRefused);
//! # });
//! ```
//!
//! The text of such an error contains the system's text, so `{error}` alone says what is wrong. A report that
//! prints the sources as well, such as `{:#}` of `anyhow`, repeats the system's text.
//!
//! # Examples
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
//! | `acceptor` | how an accept handles errors that are not those of the listener |
//! | `socket` | what all sockets have in common: conversions, options |
//! | `streams` | what TCP and Unix streams have in common; their halves |
//! | `tcp`, `udp`, `unix` | the sockets |
//! | `incoming` | the connections of a listener as a stream |

mod acceptor;
mod addresses;
mod incoming;
mod socket;
mod streams;
mod tcp;
mod udp;
#[cfg(unix)]
pub mod unix;

pub use addresses::{ToSocketAddrs, resolve};
pub use incoming::Incoming;
pub use streams::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use tcp::{TcpListener, TcpStream};
pub use udp::UdpSocket;
