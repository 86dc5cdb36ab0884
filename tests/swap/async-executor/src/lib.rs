//! Replaces `async-executor`: the same names, re-exported from paceline. This crate defines nothing.

pub use paceline::{Executor, FallibleTask, LocalExecutor, Task};
#[cfg(feature = "static")]
pub use paceline::{StaticExecutor, StaticLocalExecutor};
