//! Lets the real tokio know that a thread polls futures: then the blocking functions of its `sync` panic
//! there, as in its own runtimes, instead of blocking a thread that other futures may need.
//!
//! This works where a `block_on` is on the stack: for its future, and in a current-thread runtime for the
//! tasks. On a worker no such frame can be added, and a worker that blocks is replaced.
//!
//! Functions of its `sync` with a timeout (`send_timeout`) use the real tokio's timers, so these are
//! available, on workers, too: one thread of the process drives them, and sleeps unless such a timer is due.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::task::Poll;

use real::runtime::{Builder, Runtime};

/// Runs no tasks: this runtime is only entered.
fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(start).as_ref()
}

#[cfg(not(feature = "time"))]
fn start() -> Option<Runtime> {
    Builder::new_current_thread().build().ok()
}

/// Returns `None` if the process cannot start the thread for these timers: then they panic as outside of any
/// runtime, instead of never firing.
#[cfg(feature = "time")]
fn start() -> Option<Runtime> {
    let runtime = Builder::new_current_thread().enable_time().build().ok()?;
    // Waits until the runtime is known.
    let drive =
        || self::runtime().map(|runtime| unseen(|| (), |_| runtime.block_on(std::future::pending::<()>())));
    std::thread::Builder::new().name("tokio-time".into()).spawn(drive).ok()?;
    Some(runtime)
}

/// Called on a new worker: keeps the real tokio's timers available for the life of the thread.
pub(super) fn stays_inside() {
    if let Some(runtime) = runtime() {
        std::mem::forget(runtime.enter());
    }
}

/// Calls `f` as if in a poll of the real tokio, and restores its budget afterwards.
pub(super) fn inside<R>(f: impl FnOnce() -> R) -> R {
    match runtime() {
        Some(runtime) => inside_of(runtime, f),
        None => super::with_budget(f),
    }
}

/// Calls `f` as if in a poll of that runtime of the real tokio, and restores its budget afterwards.
pub(super) fn inside_of<R>(runtime: &Runtime, f: impl FnOnce() -> R) -> R {
    unseen(f, |f| {
        let mut f = Some(f);
        // Through the handle, whose `block_on` allows `block_in_place`.
        let result = runtime.handle().block_on(poll_fn(|_| Poll::Ready(f.take().map(|f| f()))));
        result.expect("it is polled once, and is ready at once")
    })
}

/// Calls `with` with `f`. The real tokio makes a span for each `block_on`: in `with`, no subscriber of
/// `tracing` sees that; in `f`, they are as before.
#[cfg(all(tokio_unstable, feature = "tracing"))]
fn unseen<R, F: FnOnce() -> R, S>(f: F, with: impl FnOnce(Box<dyn FnOnce() -> R + '_>) -> S) -> S {
    use tracing::dispatcher::{Dispatch, get_default, with_default};
    use tracing::subscriber::NoSubscriber;
    let present = get_default(|present| (!present.is::<NoSubscriber>()).then(|| present.clone()));
    match present {
        Some(present) => with_default(&Dispatch::none(), || with(Box::new(|| with_default(&present, f)))),
        // A subscriber that `f` makes the global one is to see `f`.
        None => with(Box::new(f)),
    }
}

#[cfg(not(all(tokio_unstable, feature = "tracing")))]
fn unseen<R, F: FnOnce() -> R, S>(f: F, with: impl FnOnce(F) -> S) -> S {
    with(f)
}

/// Calls `f` where the real tokio's timers are available.
#[cfg(tokio_unstable)]
pub(super) fn entered<R>(f: impl FnOnce() -> R) -> R {
    let _entered = runtime().map(Runtime::enter);
    f()
}

/// Returns the metrics of the real tokio about all polls.
#[cfg(tokio_unstable)]
pub(super) fn metrics() -> Option<real::runtime::RuntimeMetrics> {
    runtime().map(|runtime| runtime.metrics())
}

/// Calls `f`, which may block, perhaps in such a poll.
#[cfg(feature = "rt-multi-thread")]
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    super::with_budget(|| real::task::block_in_place(f))
}
