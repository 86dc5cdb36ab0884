//! Tasks. One is a paceline task around `TaskFuture`, and a [`Cell`] beside it, in which its output and its fate are.
//!
//! | part | what it is |
//! |---|---|
//! | [`cell`] | what a task and its handles share |
//! | [`future`](mod@future) | what paceline polls |
//! | [`join_set`], [`local`] | many tasks; tasks that stay on a thread |
//! | [`join`], [`error`], [`id`](mod@id) | as they are called |

mod cell;
mod error;
mod future;
mod id;
mod join;
pub mod join_set;
mod local;

pub use error::JoinError;
pub use id::{Id, id, try_id};
pub use join::{AbortHandle, JoinHandle};
pub use join_set::JoinSet;
pub use local::{LocalEnterGuard, LocalSet, spawn_local};
#[doc(no_inline)]
pub use real::task::{LocalKey, Unconstrained, consume_budget, coop, futures, unconstrained};

pub(crate) use cell::Cell;
pub(crate) use future::future;
pub(crate) use local::Local;

use std::future::{Future, poll_fn};
use std::task::Poll;

use crate::context;
#[cfg(feature = "rt-multi-thread")]
use crate::runtime;

#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    context::expect().spawn(future)
}

#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    context::expect().spawn_blocking(f)
}

/// Runs what blocks on this very thread. The runtime notices that a thread is stuck, and has another one take its place.
#[cfg(feature = "rt-multi-thread")]
#[track_caller]
pub fn block_in_place<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    match context::place() {
        context::Place::MustNotBlock => {
            panic!("can call blocking only when running on the multi-threaded runtime")
        }
        context::Place::Outside => f(),
        context::Place::MayMove => {
            let _moved = context::Moved::to(context::Place::Outside);
            runtime::outside(f)
        }
    }
}

/// Lets others have the thread.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(all(test, feature = "rt-multi-thread"))]
mod tests;
