//! Processes that are spawned and waited for.
//!
//! | file | what it is |
//! |---|---|
//! | `command` | options for starting a child |
//! | `child` | [`Child`], with or without a wait for its end |
//! | `exit` | notices its end: by a pidfd, or `SIGCHLD` |
//! | `reaper` | the thread that handles `SIGCHLD` and children whose [`Child`] was dropped |
//! | `pipes` | this process's ends of its standard streams |

mod child;
mod command;
mod exit;
mod pipes;
mod reaper;

pub use child::Child;
pub use command::Command;
pub use pipes::{ChildStderr, ChildStdin, ChildStdout};
