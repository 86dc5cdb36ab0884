//! [`TaskKind`]: the kind of a future that is observed.

use std::fmt;

/// The kind of a future that is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// A task that any thread may poll.
    Task,
    /// A task that stays on its thread.
    Local,
    /// A task whose polls are operations of a strand.
    Strand,
    /// The future of a `block_on`.
    BlockOn,
    /// A closure that blocks.
    Blocking,
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task => "task",
            Self::Local => "local",
            Self::Strand => "strand",
            Self::BlockOn => "block_on",
            Self::Blocking => "blocking",
        })
    }
}
