//! Stands in for `async-io`: the same names, made by paceline. Nothing is defined here.

pub use paceline::{Async, IoSafe, Readable, ReadableOwned, Timer, Writable, WritableOwned, block_on, os};
