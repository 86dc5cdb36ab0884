//! Tokio's context, on all of paceline's threads. Requires the feature `tokio`.
//!
//! Crates that need tokio's runtime look for it in the calling thread: `tokio::time::sleep`, `tokio::net` and
//! `tokio::spawn` panic if there is none. With this feature they work in every task,
//! [`block_on`](crate::block_on()) and [`unblock`](crate::unblock()) of paceline, and so do crates that are
//! built on them. No call is necessary.
//!
//! ```
//! use std::time::Duration;
//!
//! paceline::block_on(async {
//!     let task = paceline::spawn(async {
//!         tokio::time::sleep(Duration::from_millis(1)).await;
//!         tokio::spawn(async { 6 * 7 }).await.unwrap()
//!     });
//!     assert_eq!(task.await, 42);
//! });
//! ```
//!
//! # What runs where
//!
//! A process has one hidden tokio runtime, with one thread, `paceline-tokio`.
//!
//! | what | runs on |
//! |---|---|
//! | a task or a `block_on` of paceline, whatever it awaits | paceline's threads |
//! | tokio's reactor and timers | the hidden thread, which wakes the waiting task |
//! | a task of `tokio::spawn`, also one that another crate spawns | the hidden thread |
//! | a `block_on` of paceline in a task of `tokio::spawn` | that task's thread, as in `block_in_place` |
//! | `tokio::task::spawn_blocking` | tokio's threads for blocking |
//!
//! A task of `tokio::spawn` that blocks delays all of tokio's sockets and timers, as in any tokio runtime: no
//! deputy helps. During a `block_on` of paceline in such a task, another thread replaces the hidden one. In
//! `spawn_blocking`, such a `block_on` blocks its own thread only.
//!
//! `TOKIO_WORKER_THREADS` gives the hidden runtime more threads, for more work than one can do. Metrics and
//! `on_stall` cover paceline's threads only. The hidden runtime starts with the first thread that needs it,
//! and lasts until the process ends: a [shutdown](crate::Runtime::shutdown) of a paceline runtime affects
//! neither it nor tasks of `tokio::spawn`.
//!
//! A thread that is in a tokio runtime of the program stays in that one: in a [`block_on`](crate::block_on())
//! on one of its threads, and in a task that enters one by `Handle::enter`. For tokio such a `block_on`
//! blocks the thread. On a worker, call it in `block_in_place`. A current-thread runtime makes no progress
//! meanwhile, and all its waits are delayed.
//!
//! A guard of `Handle::enter` that is made in a `block_on` has to be dropped in it. If a hook of
//! [`on_thread_start`](crate::Builder::on_thread_start) keeps a guard, its worker stays in that runtime for
//! good.
//!
//! An [`Executor`](crate::Executor) that is dropped outside of a `block_on` drops its futures without a
//! context, unless its thread has one.
//!
//! On a thread that polls paceline's tasks under another library's `block_on`, enter the hidden runtime by
//! its [`handle`].
//!
//! # What it costs
//!
//! The hidden thread, which sleeps while it has no work. An access to a thread-local for each `block_on`, and
//! some dozens of nanoseconds for an outermost one. A poll costs nothing, and neither does an idle process.
//!
//! A task that waits for a socket or timer of tokio is woken by another thread. With both ends in tasks, a
//! round trip over one TCP connection took 23 us (32 us of CPU) with tokio's sockets, and 8 us (9 us) with
//! those of [`net`](crate::net); in tokio's own tasks it took 10 us. (Two virtual cores; medians of 5.) So if
//! a crate accepts streams, an executor or timers of its user, give it paceline's. This feature is for crates
//! that do not.

use crate::ambient;
use tokio::runtime::Handle;

/// Returns the handle of the hidden tokio runtime, for threads outside of paceline.
///
/// ```
/// use std::time::Duration;
///
/// // Somebody else's `block_on`:
/// let _context = paceline::tokio_context::handle().enter();
/// futures_lite::future::block_on(tokio::time::sleep(Duration::from_millis(1)));
/// ```
///
/// # Panics
///
/// If the runtime cannot be started, because threads or descriptors have run out.
#[must_use]
pub fn handle() -> Handle {
    ambient::handle()
        .unwrap_or_else(|error| panic!("the hidden tokio runtime cannot be started: {error}"))
        .clone()
}
