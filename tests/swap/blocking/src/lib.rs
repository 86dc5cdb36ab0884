//! Stands in for `blocking`: the same names, made by paceline. Nothing is defined here.

#[doc(no_inline)]
pub use paceline::Task;
pub use paceline::blocking::{Unblock, set_max_blocking_threads, unblock};
