//! An async executor whose worker threads take turns leading one reactor.
//!
//! The thread that finds an event also polls the task that waits for it. There is no I/O thread, no
//! dispatcher, and as a rule no run queue between an event and its task. If a task blocks its thread, another
//! thread takes over the reactor. The pattern is known as Leader/Followers; the README has a drawing.
//!
//! ```
//! use paceline::net::{TcpListener, TcpStream};
//! use paceline::prelude::*;
//! use paceline::{block_on, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! block_on(async {
//!     let listener = TcpListener::bind("localhost:0").await?;
//!     let addr = listener.local_addr()?;
//!     let server = spawn(async move {
//!         let (mut stream, _peer) = listener.accept().await?;
//!         stream.write_all(b"hello").await
//!     });
//!
//!     let mut greeting = String::new();
//!     TcpStream::connect(addr).await?.read_to_string(&mut greeting).await?;
//!     assert_eq!(greeting, "hello");
//!     server.await
//! })
//! # }
//! ```
//!
//! # What to use for what
//!
//! | to do | take |
//! |---|---|
//! | run one future, on this thread | [`block_on`](block_on()) |
//! | run tasks on workers that the whole program shares | [`spawn`]; dropping its [`Task`] cancels the task |
//! | choose the number of these workers, their names and hooks | [`Runtime::builder`], [`Builder::install`] |
//! | have workers of your own, or two groups of them | a [`Runtime`] |
//! | act on a runtime from another thread | its [`Handle`], which does not keep it alive |
//! | run tasks on this thread only | a runtime of the [current thread](Builder::current_thread) |
//! | run tasks that are not `Send` | [`LocalExecutor::run`] in a `block_on` |
//! | run tasks that borrow, or on threads of your own | [`Executor::run`] in a `block_on` of each thread |
//! | keep such an executor in a `static` | [`StaticExecutor`], [`StaticLocalExecutor`] |
//! | use TCP, UDP and Unix sockets | [`net`], with the traits of [`prelude`] |
//! | wait for any other descriptor | [`Async`] |
//! | wait for a time, or no longer than that | [`Timer`], [`timeout`](timeout()) |
//! | call code that blocks | [`unblock`], [`Unblock`] for streams, [`blocking::Job`] with a timeout |
//! | share a state without a lock | [`Strand`] |
//! | wait for Ctrl-C or another signal | `signal`, on Unix |
//! | end a program well | [`Handle::drain`] |
//! | test with a clock that stands still, or under a seed | the features `test-clock` and `sim` |
//!
//! The [`recipes`] have the rest: channels, `select!`, framing, limits. `Executor`, `LocalExecutor`, `Task`,
//! `Async`, `Timer` and what belongs to them have the names and the API of `async-executor` and `async-io`: a
//! program on these changes only the name of the crate.
//!
//! # Which runtime a call acts on
//!
//! There is one default instance, which is made when it is first needed. Its workers start with the first
//! [`spawn`], and it lasts until the process ends. To choose its settings, call [`Builder::install`] before
//! anything uses it.
//!
//! The *current runtime* is that of the innermost `block_on`, task or [`enter`](Handle::enter) guard on this
//! thread, or else the default instance. A runtime's hooks count as its own code, and so do the destructors
//! of the futures that it drops when it is shut down.
//!
//! | call | acts on |
//! |---|---|
//! | [`spawn`], [`block_on`](block_on()), [`metrics`] | the current runtime |
//! | [`Async::new`], and [`net`] | the current runtime: its reactor serves the source for good |
//! | [`Timer`] | the current runtime of the first poll |
//! | [`unblock`], [`blocking::Job::submit`] | the current runtime: each has threads for closures that block |
//! | [`Handle::metrics`] | the given runtime |
//!
//! A source may be used from any thread and under any executor; its events are found by the threads of its
//! reactor. So to have a [`Runtime`] serve a socket, create the socket inside of [`Handle::block_on`] or of
//! one of its tasks.
//!
//! # What a program reports
//!
//! These calls work for every runtime, including the default instance and runtimes that other crates build:
//!
//! | question | answer |
//! |---|---|
//! | Which task blocks its thread? | `PACELINE_REPORT=stalls`, [`Builder::on_stall`], [`Handle::on_stall`] |
//! | Does the program run on paceline? | `PACELINE_REPORT=start` |
//! | What does each thread do? | [`Handle::threads`] |
//! | Which tasks exist, and since when? | [`Handle::tasks`] |
//! | Which tasks panic? | [`Builder::on_task_panic`], or a line on standard error for each spawn line |
//! | What does each task wait for? | `Handle::dump` (feature `trace`) |
//! | What do tokio-console and other subscribers show? | the spans of the feature `tracing` |
//! | How much has been done? | [`Handle::metrics`], [`metrics`] |
//! | How does a metrics system get that? | [`Metrics::each`], with names, units and kinds |
//! | What did the threads do in the last seconds? | `trace::FlightRecorder`, with the feature `trace` |
//! | Which runtimes exist? | [`Handle::all`] |
//! | What did a drain cancel? | [`DrainReport::cancelled_tasks`] |
//!
//! With the environment variable `PACELINE_REPORT`, all runtimes of a program print reports on standard
//! error, without a change in the program. Its value is a list of names, separated by commas:
//!
//! | name | what is printed |
//! |---|---|
//! | `start` | a line for each runtime that starts: the version, the number of workers, the features |
//! | `stalls` | each stall as [`Builder::on_stall`] describes it, besides the hooks, and its length |
//!
//! ```text
//! $ PACELINE_REPORT=start,stalls cargo run
//! paceline: version 0.1.0 runs, with 2 workers; features: none
//! paceline: the task spawned at src/main.rs:9:5 has blocked paceline-1 for 10.9ms (in read)
//! paceline: the task spawned at src/main.rs:9:5 still blocks paceline-1, for 109ms so far (in read)
//! paceline: the task spawned at src/main.rs:9:5 blocked paceline-1 for 251ms in all
//! ```
//!
//! The variable is read when the first runtime is made. An unknown name is reported once. Other variables are
//! `PACELINE_THREADS` ([`spawn`]) and `PACELINE_BLOCKING_THREADS` ([`blocking`]).
//!
//! With the feature `tracing`, each task, closure that blocks and `block_on` has a span, by the names that
//! tokio uses (`runtime.spawn`, target `tokio::task`), so tokio-console shows them. Wakers are events of the
//! target `runtime::waker`, stalls are warnings of the target `runtime::stall`. The subscriber has to be the
//! global one, because tasks are polled and woken on any thread.
//!
//! # Platforms
//!
//! | platform | how a leader waits |
//! |---|---|
//! | Linux, Android | epoll: one system call per wait; a source is registered once and never armed again |
//! | others that `polling` supports | `polling`, one-shot: a system call arms each wait |
//!
//! The targets need atomics of 64 bits. The tests run on Linux, parts of them on other processors under qemu
//! and on Windows under Wine; for macOS the crate is only compiled. [`Tuning::portable`] selects the portable
//! way on Linux. If a sandbox forbids a system call that a runtime needs (`epoll_create1`, `eventfd2`,
//! `timerfd_create`), the runtime cannot be made, which is an error. The minimum supported Rust version is
//! 1.85.
//!
//! # Features
//!
//! All features are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `hyper` | `paceline::hyper`: executor, timer and I/O for hyper 1 |
//! | `macros` | `#[paceline::main]`, `#[paceline::test]` |
//! | `sim` | `paceline::sim`: programs under a seed, on one thread; with `macros`, `#[paceline::sim]` |
//! | `test-clock` | `paceline::clock`, `Builder::start_paused`: a clock that tests can stop |
//! | `tokio-io` | tokio's I/O traits for the streams of [`net`], and `paceline::tokio_io` for others |
//! | `tokio` | `paceline::tokio_context`: tokio's context on all threads, for crates that need its runtime |
//! | `trace` | `paceline::trace`: a flight recorder, dumps of waits; stalls name the line that blocks |
//! | `tracing` | spans of tasks and events of their wakers and stalls, for subscribers of `tracing` |
//!
//! The guide, in `docs/src` of the repository, has chapters on blocking, deadlines, simulations, and moving
//! from tokio and smol; its page *Inside* has the map of the source.

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg_attr(feature = "tokio", path = "compat/tokio_ambient.rs")]
mod ambient;
pub mod blocking;
mod blocking_threads;
mod budget;
#[cfg(feature = "test-clock")]
#[cfg_attr(docsrs, doc(cfg(feature = "test-clock")))]
#[path = "sim/clock.rs"]
pub mod clock;
mod compat;
mod current;
mod end;
mod executor;
mod flight;
mod fork;
mod insight;
mod io;
mod leadership;
mod line;
#[cfg(all(test, paceline_shuttle))]
mod model;
pub mod net;
mod notice;
mod observed;
mod place;
mod pool;
pub mod prelude;
mod probe;
mod reactor;
pub mod recipes;
mod rounded;
mod runtime;
#[cfg(unix)]
pub mod signal;
#[cfg(feature = "sim")]
#[cfg_attr(docsrs, doc(cfg(feature = "sim")))]
pub mod sim;
#[cfg_attr(feature = "sim", path = "simulated/on.rs")]
#[cfg_attr(not(feature = "sim"), path = "simulated/off.rs")]
mod simulated;
mod slab;
mod spin;
#[cfg_attr(feature = "trace", path = "trace/stack/mod.rs")]
#[cfg_attr(not(feature = "trace"), path = "trace/stack_off.rs")]
mod stack;
mod stage;
mod strand;
mod sync;
#[cfg(feature = "trace")]
#[cfg_attr(docsrs, doc(cfg(feature = "trace")))]
pub mod trace;
mod waking;
mod watch;

pub use blocking::{Unblock, unblock};
#[doc(hidden)]
#[cfg(feature = "macros")]
pub use compat::attributes as __macros;
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
pub use compat::hyper;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub use compat::tokio_context;
#[cfg(feature = "tokio-io")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio-io")))]
pub use compat::tokio_io;
pub use current::block_on;
// The aliases stand here and not at the types: rustdoc loses those where it inlines a `pub use` from a
// private module.
#[doc(alias = "LocalSet")]
pub use executor::LocalExecutor;
#[doc(alias = "JoinHandle")]
#[doc(alias = "abort")]
pub use executor::Task;
pub use executor::{Executor, FallibleTask, StaticExecutor, StaticLocalExecutor};
pub use insight::{DrainReport, Stall, StallKind, StuckThread, TaskGroup, TaskPanic};
pub use io::{
    Async, Elapsed, IoSafe, Readable, ReadableOwned, Timeout, Timer, Writable, WritableOwned, os, timeout,
};
pub use line::WakeOrder;
#[doc(hidden)]
pub use observed::{Observation, SpawnMeta, TaskKind, Watched};
#[cfg(all(feature = "macros", feature = "sim"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "macros", feature = "sim"))))]
pub use paceline_macros::sim;
#[cfg(feature = "macros")]
pub use paceline_macros::{main, test};
pub use pool::{EnterGuard, Promotion, Tuning};
pub use probe::Syscall;
// For the package that replaces tokio.
#[doc(hidden)]
pub use reactor::{Direction, Readiness, Source};
pub use runtime::{
    Builder, ClosureGroup, Handle, Metric, MetricKind, Metrics, Role, Runtime, StuckError, TaskList,
    ThreadInfo, ThreadKind, metrics, spawn,
};
#[doc(hidden)]
pub use runtime::{Load, ThreadLoad};
// For the package that replaces tokio.
#[doc(hidden)]
pub use simulated::sockets as simulated_sockets;
pub use strand::Strand;

/// Runs the examples of the README and of the guide as tests.
#[cfg(doctest)]
mod prose {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/src/start.md")]
    mod start {}
    #[doc = include_str!("../docs/src/blocking.md")]
    mod blocking {}
    #[cfg(feature = "trace")]
    #[doc = include_str!("../docs/src/who_blocks.md")]
    mod who_blocks {}
    #[doc = include_str!("../docs/src/deadlines.md")]
    mod deadlines {}
    #[cfg(all(feature = "macros", feature = "test-clock"))]
    #[doc = include_str!("../docs/src/testing.md")]
    mod testing {}
    #[cfg(all(feature = "macros", feature = "sim"))]
    #[doc = include_str!("../docs/src/simulation.md")]
    mod simulation {}
}
