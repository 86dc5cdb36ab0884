//! An async executor whose worker threads take turns leading one reactor.
//!
//! The thread that sees an event polls the task that waits for it, itself. There is no I/O thread, no dispatcher,
//! and no run queue between an event and its task; and a task that blocks its thread blinds nobody else.
#![warn(missing_docs)]

mod block_on;
mod executor;
mod io;
mod leadership;
mod pool;
mod reactor;
mod runtime;
mod sync;

pub use block_on::block_on;
pub use executor::{Executor, FallibleTask, LocalExecutor, StaticExecutor, StaticLocalExecutor, Task};
pub use io::{Async, IoSafe, Readable, ReadableOwned, Timer, Writable, WritableOwned};
pub use leadership::Order;
pub use pool::{Promotion, Stall};
pub use runtime::{Builder, Metrics, Runtime, StuckError, metrics, spawn};
