//! Finds out what a thread does: it blocks, computes, or waits for a core.
//!
//! - [`ThreadState`] asks the system about a thread: its processor time, whether it runs, and its system
//!   call. Under shuttle, the scenario provides these.
//! - [`Witness`] is the record of a thread that makes no progress between two looks.
//! - [`Syscall`] names the system call in which a thread sleeps.
//!
//! This module knows no pool and no task: it looks at threads only.

mod syscall;
#[cfg_attr(
    all(target_os = "linux", not(any(paceline_loom, paceline_shuttle, miri))),
    path = "thread_state_proc.rs"
)]
#[cfg_attr(paceline_shuttle, path = "thread_state_scene.rs")]
#[cfg_attr(
    not(any(paceline_shuttle, all(target_os = "linux", not(any(paceline_loom, miri))))),
    path = "thread_state_unknown.rs"
)]
mod thread_state;
mod witness;

pub use syscall::Syscall;
#[cfg(all(test, paceline_shuttle))]
pub(crate) use thread_state::SceneActivity;
pub(crate) use thread_state::ThreadState;
pub(crate) use witness::{Doing, WITHOUT_A_CORE, Witness};
