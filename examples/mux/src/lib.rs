//! Many streams over one connection.
//!
//! The protocol is small, and the README beside this package specifies it: frames with a limit, a window for each stream so that one that
//! nobody reads holds up neither the others nor memory, ends of one direction, resets, pings. This is a library of it for any transport
//! that reads and writes by the traits of `futures`; the example program (`src/main.rs`) serves it over TCP.
//!
//! ```
//! use example_mux::{Config, client, server};
//! use paceline::net::unix::UnixStream;
//! use paceline::prelude::*;
//! use paceline::{block_on, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! block_on(async {
//!     let (ours, theirs) = UnixStream::pair()?;
//!     let (there, driver) = server(theirs, Config::default());
//!     spawn(driver).detach();
//!     spawn(async move {
//!         while let Some(stream) = there.accept().await? {
//!             // Sends back what comes, stream by stream.
//!             spawn(async move {
//!                 futures::io::copy(&stream, &mut &stream).await?;
//!                 (&stream).close().await
//!             })
//!             .detach();
//!         }
//!         Ok::<_, example_mux::Error>(())
//!     })
//!     .detach();
//!
//!     let (connection, driver) = client(ours, Config::default());
//!     spawn(driver).detach();
//!     let mut stream = connection.open().await?;
//!     stream.write_all(b"hello").await?;
//!     stream.close().await?;
//!     let mut echo = String::new();
//!     stream.read_to_string(&mut echo).await?;
//!     assert_eq!(echo, "hello");
//!     drop(stream);
//!     Ok(connection.close().await?)
//! })
//! # }
//! ```
//!
//! # Map
//!
//! | file | what it is |
//! |---|---|
//! | `frame` | frames, and their bytes |
//! | `inbox`, `outbox` | bytes that have come and are no frame yet; frames that are being written |
//! | `session` | the states of a connection and, in `lane`, of a stream, without any I/O: what the peer does (`receive`), what the program does (`call`), what is owed (`emit`) |
//! | `shared`, `waiting` | the one lock around a session; who waits for something of it |
//! | `driver`, `silence` | the task that reads and writes the transport; whether the peer is still there |
//! | `connection`, `stream` | what the program has of it |

mod connection;
mod driver;
mod error;
mod frame;
mod inbox;
mod outbox;
#[cfg(test)]
mod random;
mod session;
mod shared;
mod silence;
mod stream;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};

pub use connection::Connection;
pub use driver::Driver;
pub use error::{Code, Error, Violation};
pub use stream::Stream;

use frame::MAX_CREDIT;
use session::{Role, Session};
use shared::Shared;

/// What one side allows the other, and how long it waits for it.
///
/// A connection has memory for `window` bytes of each stream that are not read yet and 16 KiB of each that are to be sent, and beside
/// that for less than 2 MiB. The peer may have `streams` streams; how many more the program opens is its own doing.
#[derive(Clone, Debug)]
pub struct Config {
    /// So many bytes may come on each stream before they are read: 256 KiB, unless told otherwise. From 1 to `i32::MAX`.
    pub window: u32,
    /// So many streams may the peer have at once: 128, unless told otherwise. One counts until the program has dropped it. At most
    /// `i32::MAX`.
    pub streams: u32,
    /// A peer that is silent for so long is asked whether it is there, and given up after as long again: 15 seconds, unless told
    /// otherwise. So is one that does not say HELLO, or takes nothing. `Duration::MAX` waits for ever.
    pub keep_alive: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { window: 256 << 10, streams: 128, keep_alive: Duration::from_secs(15) }
    }
}

/// The side that has connected.
pub fn client<IO>(io: IO, config: Config) -> (Connection, Driver<IO>)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    side(io, Role::Client, config)
}

/// The side that has accepted the connection.
pub fn server<IO>(io: IO, config: Config) -> (Connection, Driver<IO>)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    side(io, Role::Server, config)
}

fn side<IO>(io: IO, role: Role, mut config: Config) -> (Connection, Driver<IO>)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    config.window = config.window.clamp(1, MAX_CREDIT);
    config.streams = config.streams.min(MAX_CREDIT);
    let shared = Arc::new(Shared::new(Session::new(role, config.clone())));
    (Connection::new(shared.clone()), Driver::new(io, shared, &config))
}
