//! Processes that are spawned and waited for.
//!
//! | file | what it is |
//! |---|---|
//! | `command` | how a child is started |
//! | `child` | [`Child`], whom somebody waits for, or nobody |
//! | `exit` | how its end is noticed: a pidfd, or `SIGCHLD` |
//! | `reaper` | the thread that minds `SIGCHLD` and those children whose [`Child`] was dropped |
//! | `pipes` | the ends that we have of its standard streams |

mod child;
mod command;
mod exit;
mod pipes;
mod reaper;

pub use child::Child;
pub use command::Command;
pub use pipes::{ChildStderr, ChildStdin, ChildStdout};
