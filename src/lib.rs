//! An async executor whose worker threads take turns leading one reactor.
//!
//! The thread that sees an event polls the task that waits for it, itself. There is no I/O thread, no dispatcher,
//! and no run queue between an event and its task; and a task that blocks its thread blinds nobody else. The pattern
//! is known as Leader/Followers; the README draws it.
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
//! 1. **[`block_on`](block_on())**: one future on the current thread, which waits for its own events. No other thread is started
//!    but the deputy, which sleeps while that thread does.
//! 2. **[`spawn`]**, or a [`Runtime`] of your own: tasks on worker threads. Dropping a [`Task`] cancels it;
//!    [`Task::detach`] lets it run on its own.
//!    Their sockets are those of [`net`].
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
//! | [`Async::new`] and what is built on it, such as [`net`] | the same: its reactor is the source's for good |
//! | [`Timer`] | the same, at the moment when it is first polled; and again, should that runtime be gone before it fires |
//! | [`unblock`], [`blocking::Job::submit`] | the same: each runtime has threads of its own for what blocks, and the process has some |
//! | [`metrics`] | the default instance, always; [`Runtime::metrics`] for one of your own |
//!
//! On a thread that has [entered](Handle::enter) a runtime, these act on that one. A runtime's hooks count as its own, and so do the futures that it drops when it is shut down.
//!
//! A source may be used from any thread and under any executor. Its events are found where its reactor is, so for a
//! socket that a [`Runtime`] serves, make it inside of [`Runtime::block_on`] or of one of its tasks. Where nobody leads
//! a reactor that is in use, because its tasks run under somebody else's `block_on`, because the only thread blocks, or because a
//! wait outlives the `block_on` in which it began, the deputy notices within two ticks and has a thread lead.
//!
//! # When a runtime ends
//!
//! | what | after [`Runtime::shutdown`] or [`drain`](Runtime::drain) | after its drop |
//! |---|---|---|
//! | its tasks | are cancelled; awaiting one panics and says so, its [`fallible`](Task::fallible) form gives `None` | the same |
//! | what is spawned on it | is cancelled at once | the same, by a [`Handle`] |
//! | closures that [block](blocking) and have not begun | are cancelled; those that run go on, and are waited for by nobody | the same |
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
//! # Features
//!
//! None is on unless asked for.
//!
//! | feature | adds |
//! |---|---|
//! | `hyper` | `paceline::hyper`: executor, timer and I/O for hyper 1 |
//! | `macros` | `#[paceline::main]`, `#[paceline::test]` |
//! | `test-clock` | `paceline::clock`: a clock that tests can stop |
//! | `tokio-io` | tokio's I/O traits for the streams of [`net`], and `paceline::tokio_io` for others |
//! | `tokio` | tokio's context on all threads, for crates that need its runtime: `paceline::tokio_context` |
//!
//! # Map of the source
//!
//! No module names one that stands above it here; a test reads this table. `src/pool/block_on.rs` is the page to begin with.
//!
//! | module | what it is | knows |
//! |---|---|---|
//! | `compat` | what fits paceline to the crates of others, most of it behind features | all below |
//! | `macros` | `#[paceline::main]` and `#[paceline::test]`: a package of its own, as the compiler wants it | |
//! | `net` | sockets by name, to be cloned and split | `io`, and `blocking` for look-ups |
//! | `signal` | [`ctrl_c`](signal::ctrl_c) and other signals, on Unix | `io` |
//! | `clock` | a clock that tests can stop, behind a feature | pools |
//! | `recipes` | what to reach for in the first hour: docs only | |
//! | `prelude` | the traits of `futures` that one wants at hand | |
//! | `strand` | [`Strand`]: operations on a state, one after the other. Its README has the argument | where to spawn a task |
//! | `runtime` | [`Runtime`], [`Builder`], [`Metrics`], the free functions | all below |
//! | `blocking` | [`unblock`], [`Unblock`], [`blocking::Job`], and the threads that run them, which never lead: its README has the states of a job | pools, and the timers of `io` |
//! | `io` | [`Async`], [`Timer`], [`timeout`](timeout()), sockets | the reactor of a pool |
//! | `pool` | one reactor, its threads and the loop that each of them is in (`block_on`), and the deputy that watches over them: its README lists every promise and who notices when it is broken | where reactor, executor and leadership meet |
//! | `executor` | tasks, runners, the direct slot | wakers, never the poller |
//! | `reactor` | the poller, sources, readiness, timers | wakers, never tasks or roles |
//! | `leadership` | the promotion protocol: who leads, who waits, who is woken | neither I/O nor tasks |
//! | `line` | those who sleep until one of them is wanted: followers, and runners | |
//! | `gain` | whether it pays to wake a thread to share the work | its own memory |
//! | `spin` | whether a thread stays awake for a moment before it sleeps | its own memory |
//! | `ambient` | what code of others finds on our threads: tokio's context, or nothing | `fork` |
//! | `fork` | notices that the process was forked | |
//! | `frame` | one `block_on` on its thread's stack, with a part for each layer | |
//! | `waking` | calls wakers that may be anybody's | |
//! | `sync` | the only door to atomics, locks, threads and the clock: std; loom and shuttle in the models | |
//!
//! Deliberately absent: an I/O thread, a dispatcher, a poller per worker, a global queue that every task goes through.
//!
//! # The way of an event
//!
//! ```text
//!            kernel
//!              |  1 epoll_wait returns a batch                      reactor/sys/epoll.rs
//!              v
//!   LEADER   batch -- 2 takes the next event of it                  reactor/batch.rs
//!              |      3 leadership is vacant from here on           leadership/leader.rs
//!              v
//!   PROCESSING: still the same thread, nobody else was woken
//!            record - 4 the source's word: who waits?               reactor/readiness.rs
//!              |      5 its waker is taken out, and called          reactor/record.rs
//!              v
//!            slot --- 6 the task goes into the runner's slot        executor/host.rs
//!              |      7 the loop polls its future, a `run`          pool/block_on.rs
//!              v      8 which takes the task out                    executor/turns.rs
//!            task --- 9 and polls it: it reads, it writes           executor/task.rs
//!              |     10 until it has to wait again                  reactor/source.rs
//!              v
//!   FOLLOWER, and LEADER again if nobody else was faster
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | leader, follower | the thread that may use the batch; one that may not |
//! | role | what a thread is at: it leads, it follows, or it processes |
//! | seat | where a thread sleeps, and the tokens that wake it |
//! | line | those who sleep until one of them is wanted |
//! | host, guest, relief | the ranks of a thread: it hosts a runner; it only awaits a future; it is here only to lead |
//! | frame | a `block_on` on its thread's stack |
//! | stay | the same, as the pool knows it on its own thread |
//! | station | the same, as other threads see it, and its waker |
//! | runner | one `run` in progress, with a slot and a ring |
//! | slot | the place for the one task that a runner polls next |
//! | ring, injector | where surplus waits: of one runner's thread; of all |
//! | surplus | tasks that nobody polls directly |
//! | stranger | who polls a runner without a host: a thread in somebody else's `block_on`, a ticker |
//! | crew | a runtime's own workers |
//! | source, record | a registered descriptor; what the reactor keeps of it |
//! | batch | the events that one wait returned, and what is due: the leader's half of the reactor |
//! | tick | counts the events of a source in one direction |
//! | promise | that something happens soon, on which others rely |
//! | deputy, audit | who notices that a promise is broken; what it remembers from look to look |
//! | inside, relay | the thread that may touch a strand's state; the task that goes on where it has done its share |
//! | stall | a poll that has blocked its thread, or computed, for ten milliseconds |
//! | reserve | the one runner that is added beside threads that compute: it polls what events wake, and takes no surplus |
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg_attr(feature = "tokio", path = "ambient/tokio.rs")]
#[cfg_attr(not(feature = "tokio"), path = "ambient/none.rs")]
mod ambient;
pub mod blocking;
#[cfg(feature = "test-clock")]
#[cfg_attr(docsrs, doc(cfg(feature = "test-clock")))]
pub mod clock;
mod compat;
mod executor;
mod fork;
mod frame;
mod gain;
mod io;
mod leadership;
mod line;
#[cfg(all(test, paceline_shuttle))]
mod model;
pub mod net;
mod pool;
pub mod prelude;
mod reactor;
pub mod recipes;
mod runtime;
#[cfg(unix)]
pub mod signal;
mod spin;
mod strand;
mod sync;
mod waking;

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
pub use executor::{Executor, FallibleTask, LocalExecutor, StaticExecutor, StaticLocalExecutor, Task};
pub use io::{
    Async, IoSafe, Readable, ReadableOwned, Readiness, TimedOut, Timeout, Timer, Trusted, Writable,
    WritableOwned, os, timeout,
};
pub use line::Order;
#[cfg(feature = "macros")]
pub use paceline_macros::{main, test};
pub use pool::block_on::block_on;
pub use pool::{Drained, Promotion, Role, Stall, StallKind, StuckThread, Syscall, ThreadInfo, ThreadKind};
pub use runtime::{Builder, Entered, Handle, Metrics, Runtime, StuckError, metrics, spawn};
pub use strand::Strand;
#[cfg(paceline_contention)]
pub use sync::contention::{Contention, contention};

/// Shows the default instance's deputy an executor that strangers run. The one call that goes up: an executor is made of nothing,
/// so there is no other moment at which it could have been told whom to call.
fn oversee(executor: std::sync::Weak<executor::State>) -> Option<std::sync::Weak<dyn executor::Overseer>> {
    pool::oversee(executor)
}

/// The README's examples, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
