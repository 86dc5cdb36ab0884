//! Tasks. A task is a paceline task around a `TaskFuture`, with a `Cell` beside it that holds its output and
//! its state.
//!
//! | part | what it is |
//! |---|---|
//! | `cell` | the state that a task and its handles share |
//! | `future` | the future that paceline polls |
//! | `builder` | tasks with a name, behind `tokio_unstable` |
//! | `join_set`, `local` | many tasks; tasks that stay on a thread |
//! | `queue` | the tasks of a set that stays on a thread, in order |
//! | `join`, `error`, `id` | `JoinHandle`, `JoinError`, `Id` |

#[cfg(all(tokio_unstable, feature = "tracing"))]
mod builder;
mod cell;
mod error;
mod future;
mod id;
mod join;
pub mod join_set;
mod local;
mod queue;

#[cfg(all(tokio_unstable, feature = "tracing"))]
pub use builder::Builder;
pub use error::JoinError;
pub use id::{Id, id, try_id};
pub use join::{AbortHandle, JoinHandle};
pub use join_set::JoinSet;
pub use local::{LocalEnterGuard, LocalSet, spawn_local};
#[doc(no_inline)]
pub use real::task::{LocalKey, Unconstrained, consume_budget, coop, futures, unconstrained};

pub(crate) use paceline::{Observation, SpawnMeta, TaskKind};

pub(crate) use cell::Cell;
pub(crate) use future::{Home, future};
pub(crate) use local::{AtHome, Local};

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

/// Runs blocking code on this thread. The runtime notices that the thread is stuck, and replaces it.
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

/// Lets other tasks of the thread run.
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
