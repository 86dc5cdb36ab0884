//! Tokio's public names on top of paceline: tasks, timers, sockets and threads are paceline's; parts without
//! a runtime (`sync`, the I/O traits and utilities, the macros) are re-exported from the real tokio, so that
//! their types are the same in all crates.
//!
//! | module | what it is |
//! |---|---|
//! | `alone` | the compile error if other crates use the real tokio |
//! | `quiet` | calls user code and catches its panics |
//! | `select` | `select!` with the choices of a simulation, behind a feature |
//! | `context` | the current runtime and task, and the task's cooperative budget |
//! | `runtime` | runtimes and their parts |
//! | `task` | tasks, their handles and errors, sets of them, and those that stay on a thread |
//! | `time` | sleeping, and a clock that can be paused |
//! | `net` | sockets |
//! | `io` | descriptors of the program, and the standard streams |
//! | `fs`, `process`, `signal` | as their names say |
#![allow(missing_docs, reason = "it is tokio's documentation that describes them")]

#[cfg(all(tokio_unstable, feature = "taskdump"))]
compile_error!(
    "`taskdump` is not offered: paceline, which is in the place of tokio, takes no dumps of tasks"
);

#[cfg(all(feature = "rt", not(feature = "beside-tokio")))]
mod alone;
#[cfg(all(unix, any(feature = "process", feature = "signal")))]
mod bell;
mod context;

#[cfg(feature = "fs")]
pub mod fs;
pub mod io;
#[cfg_attr(not(feature = "net"), path = "net/addresses_only.rs")]
pub mod net;
#[cfg(all(unix, feature = "process"))]
pub mod process;
mod quiet;
#[cfg(feature = "rt")]
pub mod runtime;
#[cfg(not(feature = "rt"))]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "sockets and files are bound to one, also where none can be made"
)]
mod runtime;
#[cfg(all(feature = "macros", feature = "sim"))]
#[doc(hidden)]
pub mod select;
#[cfg(all(unix, feature = "signal"))]
pub mod signal;
#[cfg_attr(not(feature = "rt"), allow(dead_code, unused_imports, reason = "as above"))]
pub mod task;
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
pub use real::pin;
#[cfg(all(feature = "macros", not(feature = "sim")))]
pub use real::select;
#[cfg(feature = "sync")]
pub use real::sync;
#[cfg(feature = "rt")]
pub use real::task_local;
#[cfg(feature = "macros")]
pub use real::{join, main, test, try_join};
#[cfg(feature = "rt")]
pub use task::spawn;

/// The real tokio documents in this module where its streams are now.
pub mod stream {}
