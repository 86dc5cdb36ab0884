//! An async executor whose worker threads take turns leading one reactor.
//!
//! The thread that finds an event also polls the task that waits for it. There is no I/O thread, no
//! dispatcher, and no run queue between an event and its task. If a task blocks its thread, another thread
//! takes over the reactor. The pattern is known as Leader/Followers; the README has a drawing.
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
//! # Three ways to use it
//!
//! 1. **[`block_on`](block_on())** runs one future on the current thread, which waits for its own events. The
//!    only other thread that is started is the deputy, which sleeps while that thread sleeps.
//! 2. **[`spawn`]**, or a [`Runtime`] of your own, runs tasks on worker threads. Dropping a [`Task`] cancels
//!    it; [`Task::detach`] lets it run on its own. Tasks use the sockets of [`net`].
//! 3. **[`Executor`], [`LocalExecutor`], [`Async`] and [`Timer`]** replace the types of the same names of
//!    `async-executor` and `async-io`, for programs that have their own threads, and for tasks that are not
//!    `Send`.
//!
//! # Which runtime a call acts on
//!
//! There is one default instance, which is made when it is first needed. Its workers start with the first
//! [`spawn`], and it lasts until the process ends. To choose its settings, call [`Builder::install`] before
//! anything uses it. At the end of a program, [`Handle::drain`] ends its tasks.
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
//! If the runtime of a timer ends before the timer fires, the timer is armed again in the current runtime of
//! the next poll. The process has threads for closures that block, too, for calls outside of all runtimes.
//!
//! A source may be used from any thread and under any executor. Its events are found by the threads of its
//! reactor, so to have a [`Runtime`] serve a socket, create the socket inside of [`Handle::block_on`] or of
//! one of its tasks. A reactor in use may have no leader: because its tasks run under another library's
//! `block_on`, because the only thread blocks, or because a wait outlives the `block_on` in which it began.
//! The deputy notices that within two ticks and makes a thread lead.
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
//!
//! After a drain, [`DrainReport::cancelled_tasks`] has the tasks that were cancelled.
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
//! tokio uses (`runtime.spawn`, target `tokio::task`). So tokio-console shows them, with the line that
//! spawned each, its polls and its wakes. Wakers are events of the target `runtime::waker`, stalls are
//! warnings of the target `runtime::stall`. The subscriber has to be the global one, because tasks are polled
//! and woken on any thread. A future that is spawned while no subscriber wants its span costs one test for
//! each poll.
//!
//! # When a runtime ends
//!
//! | what | after [`Runtime::shutdown`] or [`drain`](Handle::drain) | after its drop |
//! |---|---|---|
//! | its tasks | are cancelled | are cancelled |
//! | tasks that are spawned on it | are cancelled at once | are cancelled at once (by a [`Handle`]) |
//! | closures that [block](blocking), not begun | are cancelled | are cancelled |
//! | closures that [block](blocking), running | go on; the runtime does not wait for them | the same |
//! | a source that was made in it | works, wherever it is awaited | returns errors |
//! | a [`Timer`] that was polled in it | fires | fires: it is armed again where it is awaited |
//!
//! Awaiting a cancelled task panics with a message; its [`fallible`](Task::fallible) form returns `None`.
//!
//! # After a fork
//!
//! A runtime, the default instance included, belongs to the process that made it: its threads do not exist in
//! a child. A child that waits in a `block_on`, spawns, or registers a source or a timer there is aborted
//! with a message, also if the fork happened inside of a `block_on` or a task and the child comes back to it.
//! The parent is not affected. A child may exit, replace its program (`exec`), drop what it inherited, and
//! use a [`Runtime`] that it builds. It has no default instance if the parent had one; fork before there is
//! one.
//!
//! # Platforms
//!
//! | platform | how a leader waits |
//! |---|---|
//! | Linux, Android | epoll: one system call per wait; a source is registered once and never armed again |
//! | others that `polling` supports | `polling`, one-shot: a system call arms each wait |
//!
//! The numbers of tests that `.ci/run emulated` runs on each platform, without those that an emulator
//! disturbs:
//!
//! | system | processor | unit tests | tests of behaviour (`tests/it`) |
//! |---|---|---|---|
//! | Linux | x86_64 | all 212 | all 499, also over `poll(2)` |
//! | Linux | i686 (32 bits) | all 204 | 157 |
//! | Linux under qemu-user | aarch64 | 204 | 156 |
//! | Linux under qemu-user | s390x (big-endian) | 202 | 76 |
//! | Windows under Wine | x86_64 | all 188 | 212 |
//! | macOS | x86_64 | compiles | - |
//!
//! The targets need atomics of 64 bits.
//!
//! If a sandbox forbids a system call that a runtime needs (`epoll_create1`, `eventfd2`, `timerfd_create`),
//! the runtime cannot be made, which is an error.
//!
//! [`Tuning::portable`] selects the portable way on Linux. The minimum supported Rust version is 1.85.
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
//! | `trace` | `paceline::trace`: a flight recorder of the threads, and dumps of what tasks wait for |
//! | `tracing` | spans of tasks and events of their wakers and stalls, for subscribers of `tracing` |
//!
//! # Map of the source
//!
//! No module names a module above it in this table; a test checks that. Read `src/pool/block_on.rs` first.
//!
//! | module | what it is | knows |
//! |---|---|---|
//! | `compat` | adapters to other crates, most of them behind features | all below |
//! | `macros` | `#[paceline::main]` and the other attributes: a package, as proc macros have to be | |
//! | `tokio` | the stand-in for tokio: a package, which this one does not depend on | |
//! | `net` | sockets that are addressed by name, cloned and split | `io`, and `blocking` for look-ups |
//! | `signal` | [`ctrl_c`](signal::ctrl_c) and other signals, on Unix | `io` |
//! | `sim` | programs that run under a seed, on one thread, behind a feature | all below |
//! | `clock` | a clock that tests can stop, behind a feature | pools |
//! | `trace` | the flight recorder, and dumps of tasks, behind a feature | all below |
//! | `recipes` | recipes for common tasks: docs only | |
//! | `prelude` | re-exported traits of `futures` | |
//! | `strand` | [`Strand`]: operations on a state, one after the other; README | where to spawn a task |
//! | `runtime` | [`Runtime`], [`Builder`], [`Metrics`], the free functions | all below |
//! | `end` | the end of a runtime: drain and shutdown | pools |
//! | `blocking` | [`unblock`], [`Unblock`], [`blocking::Job`]; README | pools, and the timers of `io` |
//! | `io` | [`Async`], [`Timer`], [`timeout`](timeout()), sockets | the reactor of a pool, and `current` |
//! | `current` | [`block_on`](block_on()), and the runtime that a call acts on | pools, and `watch` |
//! | `watch` | what the deputy's thread does about stuck threads | pools, and what their threads do |
//! | `pool` | a reactor, its threads, and their loop (`block_on`); README | reactor, executor, leadership |
//! | `blocking_threads` | the threads for closures that block; their queue | the clock that a closure holds |
//! | `executor` | tasks, runners, the direct slot | wakers, never the poller |
//! | `reactor` | the poller, sources, readiness, timers | wakers, never tasks or roles |
//! | `leadership` | the promotion protocol: which thread leads, or is woken; README | neither I/O nor tasks |
//! | `line` | the threads that sleep until one is needed, and the rule for waking them; README | |
//! | `spin` | whether a thread stays awake for a moment before it sleeps | its own memory |
//! | `insight` | reports: plain data for people, and its text | `probe` |
//! | `probe` | whether a thread blocks, computes, or waits for a core | threads, and no pool |
//! | `ambient` | the context of foreign code on our threads: none, or tokio's, which is in `compat` | |
//! | `fork` | detects that the process was forked | |
//! | `observed` | the span and the wrapped waker of a task that a subscriber or a dump observes | |
//! | `waking` | calls foreign wakers, hooks and destructors | |
//! | `notice` | lines on standard error, and which of them the environment asks for | |
//! | `rounded` | durations for people to read | |
//! | `place` | lines of source and threads for people to read | |
//! | `flight` | what each thread notes for the flight recorder, if there is one | |
//! | `simulated` | the seam of simulations and of stopped clocks: what the layers tell them, and ask them | |
//! | `stage` | how far a thread has got, as the thread notes it for observers | |
//! | `sync` | atomics, locks, threads and the clock: of std, or of loom and shuttle in the models | |
//!
//! Deliberately absent: an I/O thread, a dispatcher, a poller per worker, a global queue that every task goes
//! through.
//!
//! # The way of an event
//!
//! ```text
//!            kernel
//!              |  1 epoll_wait returns a batch                      reactor/sys/epoll.rs
//!              v
//!   LEADER   batch -- 2 the thread takes all events of it along     reactor/batch.rs
//!              |      3 leadership is vacant from here on           leadership/leader.rs
//!              v
//!   PROCESSING: still the same thread, no other one was woken
//!            share -- 4 it takes the next event; others steal half  reactor/share.rs
//!              v
//!            record - 5 the source's word: does a task wait?        reactor/readiness.rs
//!              |      6 the waker is taken out, and called          reactor/record.rs
//!              v
//!            slot --- 7 the task goes into the runner's slot        executor/host.rs
//!              |      8 the loop polls its future, a `run`          pool/block_on.rs
//!              v      9 which takes the task out                    executor/turns.rs
//!            task -- 10 and polls it: the task reads and writes     executor/task.rs
//!              |     11 until the task has to wait again            reactor/source.rs
//!              v
//!   back to 4; without events FOLLOWER, and LEADER again if no other thread was faster
//! ```
//!
//! From 4 to 11 an event enters 28 files, with eleven read-modify-writes and nine plain stores for observers.
//! `line/README.md` names them, and the fences of the ways on which a thread wakes another one.
//!
//! # Words
//!
//! Each word that several files use in a sense of its own has one meaning.
//!
//! | word | meaning |
//! |---|---|
//! | leader | the one thread that may wait for events |
//! | follower | a thread in a `block_on` of the pool that does not lead |
//! | vacant | said of leadership that no thread has: the next thread that asks gets it |
//! | role | what a thread does: it leads, it follows, or it processes an event or a task |
//! | rank | the claim of a thread to lead: host before guest before relief |
//! | host | the `block_on` in which a runner is polled; its thread polls the tasks that its events wake |
//! | guest | a thread that only awaits its own future |
//! | relief | a thread that only leads, while no other thread can |
//! | seat | the place where one thread sleeps, with the tokens that wake it |
//! | sleeper | a thread or a runner that is in a line, asleep or about to sleep |
//! | line | the list of sleepers from which one is woken |
//! | root | the future that a `block_on` awaits |
//! | stay | one `block_on` in progress, on its thread's stack |
//! | station | the same `block_on` as other threads see it, and its waker |
//! | runner | one `Executor::run` in progress |
//! | slot | the place for the one task that a runner polls next |
//! | ring | a runner's local queue |
//! | injector | the queue that all runners of an executor take from |
//! | surplus | the tasks in rings and injectors, as opposed to those in slots |
//! | stranger | a thread that polls a runner outside of every pool: in a foreign `block_on`, or in a ticker |
//! | crew | a runtime's workers |
//! | replacement | a worker that was added beyond the usual number |
//! | standby | a worker that leads while the others compute, and takes no task from a queue |
//! | extra | said of a worker beyond the usual number that takes tasks: all have computed for long |
//! | source | a registered descriptor |
//! | record | what the reactor keeps of a source |
//! | count of a source | how many events have come in one direction; it wraps |
//! | batch | the events that one wait has returned, and the timers that are due |
//! | share | the events that one thread has taken along and not fired yet; others may steal them |
//! | promise | something that a thread will do soon, and that others rely on |
//! | deputy | the thread that notices when a promise is broken |
//! | look | one round of the deputy: it observes, decides and acts |
//! | tick | the time between two looks |
//! | rest | a pause of the deputy that is longer than a tick, while threads are stuck for long |
//! | quiet | said of a pool in which all threads sleep and no work waits: the deputy sleeps, too |
//! | stage | how far a thread has got, as a word: two equal readings mean no progress |
//! | witness | the deputy's record of a thread that makes no progress |
//! | stuck | said of a thread without progress between two looks: it blocks, computes, or waits for a core |
//! | stall | a poll that has blocked its thread, or computed, for ten milliseconds |
//! | conductor | the thread that conducts the end of a runtime |
//! | helper | the thread that drops what is left at the end of a runtime, beside the workers |
//! | vigil | the wait of one thread until no more than a given number of tasks is left |
//! | inside | said of the thread that may use a strand's state |
//! | relay | the task that continues a strand's operations after a thread has done its share |
//!
//! # Invariants
//!
//! Comments and names of tests cite these by number. LF5 holds while a source or timer is registered.
//!
//! | | |
//! |---|---|
//! | LF1 | at most one thread waits on a poller |
//! | LF2 | leadership is vacant before user code runs on the thread that had it |
//! | LF3 | no user code (a future, a waker, or the drop of either) runs while leadership or a lock is held |
//! | LF4 | one promotion wakes one follower at most, and no event wakes all of them |
//! | LF5 | a thread leads, or will when it has fired its share, or the deputy notices within two ticks |
//! | LF6 | an event is fired once: it reaches the registered waker, or is remembered as readiness |
//! | LF7 | a task that can run is in one place: a slot, a ring, the injector, or a poll |
//! | LF8 | "lead" and "your future was woken" are separate tokens of a sleeping thread |
//! | LF9 | an idle process makes no system calls |

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg_attr(feature = "tokio", path = "compat/tokio_ambient.rs")]
mod ambient;
pub mod blocking;
mod blocking_threads;
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
mod spin;
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
