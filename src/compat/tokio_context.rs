//! Tokio's context, on all of paceline's threads. With the feature `tokio`.
//!
//! Crates that need tokio's runtime ask for it where they are called: `tokio::time::sleep`, `tokio::net`, `tokio::spawn` panic elsewhere. With
//! the feature they work in every task, [`block_on`](crate::block_on()) and [`unblock`](crate::unblock()) of paceline's, and so do the
//! crates that are built on them. There is nothing to call.
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
//! There is one hidden tokio runtime in a process, with one thread, `paceline-tokio`.
//!
//! | what | runs on |
//! |---|---|
//! | a task or a `block_on` of paceline's, whatever it awaits | paceline's threads |
//! | tokio's reactor and timers | the hidden thread: it wakes the task that waits, which paceline then polls |
//! | what is given to `tokio::spawn`, by a crate that you use, too | the hidden thread. What blocks there delays all of tokio's sockets and timers, as in any tokio runtime, and no deputy comes to help |
//! | a `block_on` of paceline's in what was given to `tokio::spawn` | its thread, which another one stands in for meanwhile, as in `block_in_place` |
//! | `tokio::task::spawn_blocking` | tokio's threads for that |
//!
//! `TOKIO_WORKER_THREADS` gives it more threads, if there is more to do than one can. Metrics and `on_stall` know of paceline's threads only.
//! The hidden runtime starts with the first thread that needs it, and is there until the process ends: a
//! [shutdown](crate::Runtime::shutdown) of one of paceline's does not touch it, nor what was given to `tokio::spawn`.
//!
//! A thread that is in a tokio runtime of the program's own stays in that one: a [`block_on`](crate::block_on()) on one of its threads, a
//! task that enters one by `Handle::enter`. Such a `block_on` blocks its thread, as tokio sees it: on a worker it belongs into
//! `block_in_place`, and a current-thread runtime stands still meanwhile, with all that is waited for there.
//!
//! A guard of `Handle::enter` that is made in a `block_on` has to be dropped in it. One that a hook of
//! [`on_thread_start`](crate::Builder::on_thread_start) keeps has its worker in that runtime for good.
//!
//! An [`Executor`](crate::Executor) that is dropped outside of a `block_on` drops its futures without a context, unless its thread has one.
//!
//! On a thread that polls paceline's tasks under somebody else's `block_on`, enter the hidden one by its [`handle`].
//!
//! # What it costs
//!
//! The hidden thread, which sleeps while there is nothing to do; a look at a thread-local for each `block_on`, and some dozens of
//! nanoseconds for an outermost one. A poll costs nothing, and neither does an idle process. What waits for a socket or timer of tokio's is
//! woken by another thread: with both ends in tasks, a round trip over one TCP connection took 23 us (32 us of CPU) by tokio's sockets, and 8 us
//! (9 us) by those of [`net`](crate::net); in tokio's own tasks it took 10 us. (Two virtual cores; medians of 5.) So where a crate takes its
//! user's streams, executor or timers, give it paceline's; the feature is for what does not.
//!
//! # After a fork
//!
//! A child of `fork` has a hidden runtime of its own. Tokio's sockets, timers and tasks that it inherited are its parent's: to use or drop
//! them there is as wrong as in any program on tokio.

use crate::ambient;
use tokio::runtime::Handle;

/// The hidden tokio runtime, for threads that are not paceline's.
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
/// If it cannot be started, because threads or descriptors have run out.
#[must_use]
pub fn handle() -> Handle {
    ambient::handle()
        .unwrap_or_else(|error| panic!("the hidden tokio runtime cannot be started: {error}"))
        .clone()
}
