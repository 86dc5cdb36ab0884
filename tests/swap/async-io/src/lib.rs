//! Replaces `async-io`: the same names, re-exported from paceline. This crate defines nothing.

pub use paceline::{Async, IoSafe, Readable, ReadableOwned, Timer, Writable, WritableOwned, block_on, os};
