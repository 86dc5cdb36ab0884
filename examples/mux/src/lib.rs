//! Many streams over one connection.
//!
//! The protocol is small, and the README of this package specifies it: frames with a maximum size, a window
//! for each stream so that an unread one delays no other stream and takes bounded memory, ends of one
//! direction, resets, pings. This library implements it for any transport with the traits of `futures`; the
//! example program (`src/main.rs`) serves it over TCP.
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
//!             // Echoes each stream.
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
//! | `inbox`, `outbox` | incomplete incoming frames; frames that are being written |
//! | `session` | the states of a connection and, in `lane`, of a stream, without any I/O |
//! | `shared`, `waiting` | the one lock around a session; the tasks that wait for it |
//! | `driver`, `silence` | the task that reads and writes the transport; whether the peer is still there |
//! | `connection`, `stream` | the program's handles |

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

/// The limits that one side grants the other, and its timeouts.
///
/// A connection has memory for `window` unread bytes of each stream and 16 KiB of each that are to be sent,
/// and besides that for less than 2 MiB. The peer may have `streams` streams; the program decides how many
/// more it opens.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many unread bytes each stream may have: 256 KiB by default. From 1 to `i32::MAX`.
    pub window: u32,
    /// How many streams the peer may have at once: 128 by default. A stream counts until the program has
    /// dropped it. At most `i32::MAX`.
    pub streams: u32,
    /// A peer that is silent for so long is pinged, and disconnected after as long again: 15 seconds by
    /// default. The same for a peer that does not send HELLO, or reads nothing. `Duration::MAX` waits for
    /// ever.
    pub keep_alive: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { window: 256 << 10, streams: 128, keep_alive: Duration::from_secs(15) }
    }
}

/// Returns the side that has connected.
pub fn client<IO>(io: IO, config: Config) -> (Connection, Driver<IO>)
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    side(io, Role::Client, config)
}

/// Returns the side that has accepted the connection.
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
