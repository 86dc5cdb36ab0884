//! Replaces `blocking`: the same names, re-exported from paceline. This crate defines nothing.

#[doc(no_inline)]
pub use paceline::Task;
pub use paceline::blocking::{Unblock, set_max_blocking_threads, unblock};
