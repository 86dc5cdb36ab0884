//! What people read of a runtime: reports as plain data, and their text. Nothing here acts on a runtime, or
//! knows one: the layers above fill the reports in, and tell when one is due.
//!
//! | part | what it reports |
//! |---|---|
//! | [`Stall`] | a task that blocks its thread, or computes |
//! | [`event`] | the same as an event of `tracing` |
//! | [`panicked`] | tasks that panic |
//! | [`groups`] | unfinished tasks by the line that spawned them |
//! | [`drain_report`] | the end of a runtime, and what is stuck then |

mod drain_report;
#[cfg_attr(feature = "tracing", path = "event_on.rs")]
#[cfg_attr(not(feature = "tracing"), path = "event_off.rs")]
pub(crate) mod event;
mod groups;
mod panicked;
mod stall;

pub use drain_report::{DrainReport, StuckThread};
pub use groups::TaskGroup;
pub use panicked::TaskPanic;
pub use stall::{Stall, StallKind};

pub(crate) use drain_report::counted;
pub(crate) use groups::Grouping;
pub(crate) use panicked::Panics;
pub(crate) use stall::{Part, Reports, StallHook, StallNow, Stalls};
