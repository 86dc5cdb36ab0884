//! An async executor whose worker threads take turns leading one reactor.
//!
//! The thread that sees an event polls the task that waits for it, itself. There is no I/O thread, no dispatcher,
//! and no run queue between an event and its task; and a task that blocks its thread blinds nobody else. The pattern
//! is known as Leader/Followers; the README draws it.
//!
//! ```
//! use std::net::{TcpListener, TcpStream};
//!
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use paceline::{Async, block_on, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! block_on(async {
//!     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
//!     let addr = listener.get_ref().local_addr()?;
//!     let server = spawn(async move {
//!         let (mut stream, _peer) = listener.accept().await?;
//!         stream.write_all(b"hello").await
//!     });
//!
//!     let mut greeting = String::new();
//!     Async::<TcpStream>::connect(addr).await?.read_to_string(&mut greeting).await?;
//!     assert_eq!(greeting, "hello");
//!     server.await
//! })
//! # }
//! ```
//!
//! # Three ways to use it
//!
//! 1. **[`block_on`](block_on())**: one future on the current thread, which waits for its own events. No other thread is started
//!    but the deputy, which sleeps while that thread does.
//! 2. **[`spawn`]**, or a [`Runtime`] of your own: tasks on worker threads. Dropping a [`Task`] cancels it;
//!    [`Task::detach`] lets it run on its own.
//! 3. **[`Executor`], [`LocalExecutor`], [`Async`], [`Timer`]** in place of their namesakes of `async-executor` and
//!    `async-io`, for programs that bring their own threads, and for tasks that are not `Send`.
//!
//! # Which runtime a call acts on
//!
//! There is one default instance. It is made when it is first needed, its workers start with the first [`spawn`], and
//! it stays until the process ends. [`Builder::install`] puts one with your settings in its place, before it is used.
//!
//! | call | acts on |
//! |---|---|
//! | [`spawn`], [`block_on`](block_on()) | the runtime whose thread or task this is, else the default instance |
//! | [`Async::new`] and what is built on it | the same: its reactor is the source's for good |
//! | [`Timer`] | the same, at the moment when it is first polled; and again, should that runtime be gone before it fires |
//! | [`metrics`] | the default instance, always; [`Runtime::metrics`] for one of your own |
//!
//! A runtime's hooks count as its own, and so do the futures that it drops when it is shut down.
//!
//! A source may be used from any thread and under any executor. Its events are found where its reactor is, so for a
//! socket that a [`Runtime`] serves, make it inside of [`Runtime::block_on`] or of one of its tasks. Where nobody leads
//! a reactor that is in use, because its tasks run under somebody else's `block_on`, because the only thread blocks, or because a
//! wait outlives the `block_on` in which it began, the deputy notices within two ticks and has a thread lead.
//!
//! # When a runtime ends
//!
//! | what | after [`Runtime::shutdown`] | after its drop |
//! |---|---|---|
//! | its tasks | are cancelled; awaiting one panics and says so, its [`fallible`](Task::fallible) form gives `None` | the same |
//! | what is spawned on it | is cancelled at once | - |
//! | a source that was made in it | works on, wherever it is awaited | is an error |
//! | a [`Timer`] that was polled in it | fires | fires: it is armed anew where it is awaited |
//!
//! # After a fork
//!
//! A child process has a default instance of its own. What it inherited says so: a [`Runtime`] panics when it is used, and
//! is dropped without a wait; a wait for a source is an error. Where the fork happened inside of a `block_on` or a task,
//! the child may go on there until that would have to wait: then it is aborted, with a message. The parent notices nothing.
//!
//! # Platforms
//!
//! | platform | how a leader waits |
//! |---|---|
//! | Linux, Android | epoll: one system call per wait, sources registered once, none to arm them again |
//! | whatever else `polling` supports | `polling`'s interface, one-shot: a call to arm for each wait. Tested on Linux, over `poll(2)`; on no other system yet |
//!
//! [`Builder::portable`] takes the portable path on Linux, too. The minimum supported Rust is 1.85.
//!
//! # Map of the source
//!
//! Lower layers never name higher ones; from the top:
//!
//! | module | what it is | knows |
//! |---|---|---|
//! | `runtime` | [`Runtime`], [`Builder`], [`Metrics`], the free functions | all below |
//! | `io` | [`Async`], [`Timer`], sockets | the reactor of a pool |
//! | `block_on` | the loop that each thread is in, on one screen: start here | where reactor and executor meet |
//! | `pool` | one reactor, its threads, and the deputy that watches over them: its README lists every promise and who notices when it is broken | leadership and reactor |
//! | `executor` | tasks, runners, the direct slot | wakers, never the poller |
//! | `reactor` | the poller, sources, readiness, timers | wakers, never tasks or roles |
//! | `leadership` | the promotion protocol: who leads, who waits, who is woken | neither I/O nor tasks |
//! | `spin` | whether a thread stays awake for a moment before it sleeps | its own memory |
//! | `sync` | the only door to atomics, locks, threads and the clock: std; loom and shuttle in the models | |
//! | `waking` | calls wakers that may be anybody's | |
//! | `fork` | notices that the process was forked | |
//!
//! Deliberately absent: an I/O thread, a dispatcher, a poller per worker, a global queue that every task goes through.
#![warn(missing_docs)]

mod block_on;
mod executor;
mod fork;
mod io;
mod leadership;
#[allow(dead_code, reason = "leadership and executor move in next")]
mod line;
#[cfg(all(test, paceline_shuttle))]
mod model;
mod pool;
mod reactor;
mod runtime;
mod spin;
mod sync;
mod waking;

pub use block_on::block_on;
pub use executor::{Executor, FallibleTask, LocalExecutor, StaticExecutor, StaticLocalExecutor, Task};
pub use io::{Async, IoSafe, Readable, ReadableOwned, Timer, Writable, WritableOwned, os};
pub use leadership::Order;
pub use pool::{Promotion, Stall};
pub use runtime::{Builder, Metrics, Runtime, StuckError, metrics, spawn};

/// Shows the overseer an executor that strangers run. The one call that goes up: an executor is made of nothing, so there is
/// no other place where it could have been told whom to call.
fn oversee(executor: std::sync::Weak<executor::State>) -> Option<executor::Alarm> {
    pool::oversee(executor)
}

/// The README's examples, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
