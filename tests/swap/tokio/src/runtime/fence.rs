//! Has the real tokio know that a thread polls futures: what of its `sync` blocks panics there, as it does in its own runtimes, instead of
//! blocking the thread for what perhaps another future on it would have done.
//!
//! Known where a `block_on` is on the stack: for its future, and on a runtime of the current thread for the tasks. On a worker nobody
//! can be put on the stack, and one that blocks is stood in for.
//!
//! What of its `sync` has a limit of time (`send_timeout`) looks there for the real tokio's timers, so they are there, on workers, too:
//! one thread of the process, which sleeps unless such a timer is due, drives them.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::task::Poll;

use real::runtime::{Builder, Runtime};

/// It runs no tasks: it is there to be entered.
fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(start).as_ref()
}

#[cfg(not(feature = "time"))]
fn start() -> Option<Runtime> {
    Builder::new_current_thread().build().ok()
}

/// `None` where the process has no thread left for its timers: then they panic as if they were outside of any runtime, instead of never
/// being due.
#[cfg(feature = "time")]
fn start() -> Option<Runtime> {
    let runtime = Builder::new_current_thread().enable_time().build().ok()?;
    // It waits until this is known.
    let drive = || self::runtime().map(|runtime| runtime.block_on(std::future::pending::<()>()));
    std::thread::Builder::new().name("tokio-time".into()).spawn(drive).ok()?;
    Some(runtime)
}

/// A worker starts: it finds the real one's timers for as long as it lives.
pub(super) fn stays_inside() {
    runtime().into_iter().for_each(|runtime| std::mem::forget(runtime.enter()));
}

/// Calls `f` as if it were a poll of the real one. Its budget is put back after it.
pub(super) fn inside<R>(f: impl FnOnce() -> R) -> R {
    let Some(runtime) = runtime() else { return super::with_budget(f) };
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
