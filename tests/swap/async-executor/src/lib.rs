//! Stands in for `async-executor`: the same names, made by paceline. Nothing is defined here.

pub use paceline::{Executor, FallibleTask, LocalExecutor, Task};
#[cfg(feature = "static")]
pub use paceline::{StaticExecutor, StaticLocalExecutor};
