//! A drain from inside of its own runtime: which tasks and closures end, and which calls are refused because
//! they would wait for themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_lite::future;
use paceline::blocking::Job;
use paceline::{Handle, Runtime, block_on, unblock};

use crate::drain::HOUR;
use crate::setups::{Latch, SOON, for_each_builder, for_each_setup, text_of};

/// The text of the panic of a drain inside of a closure that blocks.
const REFUSED: &str = "so none of them can wait for it";

/// Calls a function inside of the runtime.
fn within<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    let _inside = runtime.handle().enter();
    call()
}

/// Runs a closure on the runtime's threads for closures that block, and returns the text of its panic.
fn panic_of(runtime: &Runtime, closure: impl FnOnce() + Send + 'static) -> String {
    let awaited = catch_unwind(AssertUnwindSafe(|| runtime.block_on(async { unblock(closure).await })));
    text_of(&*awaited.expect_err("the closure panics")).to_owned()
}

/// A drain would wait for the closure in which it is awaited. Fails, by the watchdog, without the check.
#[test]
fn a_drain_in_a_closure_that_blocks_for_the_runtime_is_refused() {
    for_each_setup(|runtime| {
        let inner = runtime.clone();
        assert!(panic_of(runtime, move || drop(block_on(inner.drain(HOUR)))).contains(REFUSED));
        let inside = || drop(block_on(Handle::current().drain(HOUR)));
        assert!(panic_of(runtime, inside).contains(REFUSED));
        let inner = runtime.clone();
        let job = within(runtime, || Job::new(move || block_on(inner.drain(HOUR))).submit());
        let awaited = catch_unwind(AssertUnwindSafe(|| block_on(job)));
        assert!(text_of(&*awaited.unwrap_err()).contains(REFUSED));
        // The runtime still works.
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })), 1);
        let report = runtime.block_on(runtime.drain(HOUR));
        assert!(report.is_clean(), "{report}");
    });
}

/// A drain does not wait for the task in whose `block_on` it is awaited: its thread counts as stuck, and has
/// the report. So has a task of another runtime. Fails, by the watchdog, if the drain waits for the task.
#[test]
fn a_drain_in_a_block_on_inside_of_a_task_does_not_wait_for_that_task() {
    for_each_setup(|runtime| {
        let task = runtime.spawn(async { block_on(Handle::current().drain(HOUR)) });
        let report = pollster::block_on(task);
        assert_eq!((report.finished, report.cancelled, report.stuck.len()), (0, 0, 1), "{report}");
        let handle = runtime.handle();
        let other = Runtime::builder().threads(1).build().unwrap();
        let task = other.spawn(async move { block_on(handle.drain(HOUR)).stuck.len() });
        assert_eq!(pollster::block_on(task), 1);
    });
}

/// The same if a task awaits the closure: the drain would wait for that task, too.
#[test]
fn a_task_that_awaits_a_closure_that_drains_has_its_panic() {
    for_each_setup(|runtime| {
        let inner = runtime.clone();
        let task = runtime.spawn(async move { unblock(move || block_on(inner.drain(HOUR))).await });
        let awaited = catch_unwind(AssertUnwindSafe(|| block_on(task)));
        assert!(text_of(&*awaited.unwrap_err()).contains(REFUSED));
    });
}

/// A closure cannot await a drain that was begun elsewhere either, and that drain goes on.
#[test]
fn a_drain_in_progress_is_refused_to_a_closure_and_goes_on() {
    for_each_setup(|runtime| {
        let (go, may_go) = async_channel::bounded::<()>(1);
        runtime.spawn(async move { may_go.recv().await }).detach();
        let (begun, inner) = (Latch::new(), runtime.clone());
        let has_begun = begun.clone();
        let closure = within(runtime, || {
            unblock(move || {
                has_begun.wait();
                let drain = inner.drain(HOUR);
                catch_unwind(AssertUnwindSafe(|| block_on(drain))).is_err()
            })
        });
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert!(block_on(future::poll_once(&mut drain)).is_none());
        begun.open();
        assert!(block_on(closure));
        go.try_send(()).unwrap();
        let report = block_on(drain);
        assert!(report.is_clean(), "{report}");
    });
}

/// A closure that is still running when the runtime has ended gets the report.
#[test]
fn a_closure_that_outlives_the_runtime_has_the_report() {
    for_each_builder(|setup| {
        let runtime = Arc::new(setup.build());
        let (ended, begun) = (Latch::new(), Latch::new());
        let (has_ended, has_begun) = (ended.clone(), begun.clone());
        let inner = runtime.clone();
        let closure = within(&runtime, || {
            unblock(move || {
                has_begun.open();
                has_ended.wait();
                block_on(inner.drain(HOUR)).jobs_lost.len()
            })
        });
        begun.wait();
        let report = block_on(runtime.drain(std::time::Duration::ZERO));
        assert_eq!(report.jobs_lost.len(), 1, "{report}");
        ended.open();
        assert_eq!(block_on(closure), 1);
    });
}

/// A drain is polled on another thread first, and then in a task: the drain does not wait for that task.
/// Fails, by the watchdog, if only the first poll records the awaiting task.
#[test]
fn a_drain_that_is_moved_into_a_task_does_not_wait_for_that_task() {
    for_each_setup(|runtime| {
        let (give, given) = async_channel::bounded(1);
        let task = runtime.spawn(async move {
            let drain: future::Boxed<paceline::DrainReport> = given.recv().await.unwrap();
            drain.await
        });
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert!(block_on(future::poll_once(&mut drain)).is_none());
        give.try_send(drain as future::Boxed<_>).unwrap();
        let report = block_on(runtime.drain(HOUR));
        assert_eq!((report.finished, report.cancelled), (0, 1), "{report}");
        assert!(block_on(task.fallible()).is_none(), "it is cancelled");
    });
}

/// A shutdown waits for no closure, so a closure may call it.
#[test]
fn a_closure_may_shut_its_runtime_down() {
    for_each_setup(|runtime| {
        let inner = runtime.clone();
        let closure = within(runtime, || unblock(move || inner.shutdown(SOON).is_ok()));
        assert!(block_on(closure));
    });
}
