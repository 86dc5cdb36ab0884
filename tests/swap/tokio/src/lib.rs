//! Tokio's public names on top of paceline: what runs tasks, timers, sockets and threads is ours; what needs no runtime (`sync`, the
//! I/O traits and utilities, the macros) is the real tokio's, re-exported, so that its types are the same for everybody.
//!
//! | module | what it is |
//! |---|---|
//! | `context` | which runtime and which task this is, and the task's share of cooperation |
//! | `runtime` | runtimes and what belongs to them |
//! | `task` | tasks, their handles and errors, sets of them, and those that stay on a thread |
//! | `time` | sleeping, and a clock that can be paused |
//! | `net` | sockets |
//! | `io` | descriptors of others, and the standard streams |
//! | `fs`, `process`, `signal` | as they are called |
#![allow(missing_docs, reason = "it is tokio's documentation that describes them")]

#[cfg(all(unix, any(feature = "process", feature = "signal")))]
mod bell;
mod context;

#[cfg(feature = "fs")]
pub mod fs;
pub mod io;
#[cfg(feature = "net")]
pub mod net;
#[cfg(all(unix, feature = "process"))]
pub mod process;
#[cfg(feature = "rt")]
pub mod runtime;
#[cfg(not(feature = "rt"))]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "sockets and files are bound to one, also where none can be made"
)]
mod runtime;
#[cfg(all(unix, feature = "signal"))]
pub mod signal;
#[cfg(feature = "rt")]
pub mod task;
#[cfg(not(feature = "rt"))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "as above")]
mod task;
#[cfg(feature = "time")]
pub mod time;
#[cfg(not(feature = "time"))]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a runtime has a clock, also where none can be asked"
)]
mod time;

#[doc(hidden)]
pub use real::macros;
#[cfg(feature = "sync")]
pub use real::sync;
#[cfg(feature = "rt")]
pub use real::task_local;
#[cfg(feature = "macros")]
pub use real::{join, main, pin, select, test, try_join};
#[cfg(feature = "rt")]
pub use task::spawn;

/// Where the real one says what became of its streams.
pub mod stream {}
