//! Has the real tokio know that a thread polls futures: what of its `sync` blocks panics there, as it does in its own runtimes, instead of
//! blocking the thread for what perhaps another future on it would have done.
//!
//! Known where a `block_on` is on the stack: for its future, and on a runtime of the current thread for the tasks. On a worker nobody
//! can be put on the stack, and one that blocks is stood in for.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::task::Poll;

use real::runtime::{Builder, Runtime};

/// It runs nothing, and has neither threads nor a driver: it is there to be entered.
static ENTERED: OnceLock<Option<Runtime>> = OnceLock::new();

/// Calls `f` as if it were a poll of the real one. Its budget is put back after it.
pub(super) fn inside<R>(f: impl FnOnce() -> R) -> R {
    let runtime = ENTERED.get_or_init(|| Builder::new_current_thread().build().ok());
    let Some(runtime) = runtime else { return super::with_budget(f) };
    let mut f = Some(f);
    // By its handle, which is the kind of `block_on` that `block_in_place` may interrupt.
    let result = runtime.handle().block_on(poll_fn(|_| Poll::Ready(f.take().map(|f| f()))));
    result.expect("it is polled once, and is ready at once")
}

/// Calls `f`, which may block, perhaps in such a poll.
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(feature = "rt-multi-thread")]
    let f = || real::task::block_in_place(f);
    super::with_budget(f)
}
