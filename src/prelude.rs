//! The traits that most programs need: `use paceline::prelude::*`.
//!
//! The module re-exports traits of `futures` under their own names: reading and writing (`read_exact`,
//! `write_all`, `lines`; `copy` is in [`futures::io`]), streams (`next`, `for_each`), sinks, and futures
//! (`map`, `boxed`).
//!
//! ```
//! use paceline::net::unix::UnixStream;
//! use paceline::prelude::*;
//!
//! # fn main() -> std::io::Result<()> {
//! # paceline::block_on(async {
//! let (mut ours, mut theirs) = UnixStream::pair()?;
//! ours.write_all(b"hello").await?;
//! ours.close().await?;
//! let mut all = String::new();
//! theirs.read_to_string(&mut all).await?;
//! assert_eq!(all, "hello");
//! # Ok(())
//! # })
//! # }
//! ```

pub use futures::future::{FutureExt, TryFutureExt};
pub use futures::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt,
};
pub use futures::sink::{Sink, SinkExt};
pub use futures::stream::{Stream, StreamExt, TryStreamExt};
