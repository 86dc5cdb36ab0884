//! Objects that outlive their runtime. Timers fire all the same, wherever they are awaited; these tests fail
//! without `Timers::close`, unless a test names another cause. Objects that are kept hold only memory of
//! their runtime, unless they are sources or timers.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures_lite::{StreamExt, future};
use paceline::blocking::Job;
use paceline::{Runtime, Timer, block_on, unblock};

use crate::blocking::panic_of;
use crate::setups::{SOON, eventually, for_each_builder, waker_that};

const SHORT: Duration = Duration::from_millis(20);

/// Polls `timer` in a `block_on` of this runtime, before its deadline even on a slow machine.
fn poll_in(runtime: &Runtime, timer: &mut Timer) {
    let deadline = timer.deadline().expect("the timer is to fire");
    timer.set_after(Duration::from_secs(3600));
    assert!(runtime.block_on(future::poll_once(&mut *timer)).is_none());
    timer.set_at(deadline);
}

/// Another `block_on` awaits the timer only after its runtime was dropped.
#[test]
fn a_timer_is_armed_anew_where_it_is_awaited() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let mut timer = Timer::after(Duration::from_millis(100));
        let mut moved = Timer::after(Duration::from_secs(3600));
        let mut ticks = Timer::interval(SHORT);
        poll_in(&runtime, &mut timer);
        poll_in(&runtime, &mut moved);
        assert!(runtime.block_on(ticks.next()).is_some());
        drop(runtime);
        moved.set_after(SHORT);
        block_on(async {
            ticks.next().await;
            ticks.next().await;
            moved.await;
            timer.await;
        });
    });
}

/// Another `block_on`, which registered its waker, awaits the timer while its runtime is dropped.
#[test]
fn a_timer_that_is_awaited_is_armed_anew() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let mut timer = Timer::after(Duration::from_secs(3600));
        poll_in(&runtime, &mut timer);
        block_on(async {
            assert!(future::poll_once(&mut timer).await.is_none());
            timer.set_after(Duration::from_millis(300));
            let dropping = thread::spawn(move || drop(runtime));
            timer.await;
            dropping.join().unwrap();
        });
    });
}

/// The end of the runtime wakes the task, which polls the timer with the same waker: the timer must not count
/// as armed. Fails without `Alarm::is_lost`.
#[test]
fn a_timer_that_was_lost_is_not_taken_for_armed() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let mut timer = Timer::after(Duration::from_secs(3600));
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = waker_that({
            let wakes = wakes.clone();
            move || {
                wakes.fetch_add(1, SeqCst);
            }
        });
        let poll = |timer: &mut Timer| Pin::new(timer).poll(&mut Context::from_waker(&waker));
        assert!(runtime.block_on(async { poll(&mut timer) }).is_pending());
        drop(runtime);
        // A thread of the runtime may be the last owner.
        eventually("the end of the runtime wakes", || wakes.load(SeqCst) == 1);
        assert!(poll(&mut timer).is_pending());
        timer.set_after(SHORT);
        eventually("it fires elsewhere", || wakes.load(SeqCst) == 2);
        assert!(poll(&mut timer).is_ready());
    });
}

/// `Runtime` and the reference promise this text, which is that of `async-task`: its `Task` cannot be told why
/// it was cancelled.
#[test]
fn a_task_of_a_runtime_that_has_ended_panics_where_it_is_awaited() {
    const TEXT: &str = "Task polled after completion";
    for_each_builder(|setup| {
        let [other, drops, ends, drains] = [(); 4].map(|()| setup.build());
        let waits = |runtime: &Runtime| [(); 3].map(|()| runtime.spawn(future::pending::<()>()));
        let tasks = [&drops, &ends, &drains].map(waits);
        let late = drops.handle();
        drop(drops);
        ends.shutdown(SOON).unwrap();
        block_on(drains.drain(Duration::ZERO));
        for [mut here, elsewhere, not_needed] in tasks {
            // Its second await gives the same.
            for _ in 0..2 {
                assert_eq!(panic_of(|| block_on(&mut here)), TEXT);
                assert_eq!(panic_of(|| other.block_on(&mut here)), TEXT);
                assert_eq!(panic_of(|| pollster::block_on(&mut here)), TEXT);
            }
            assert_eq!(panic_of(|| block_on(other.spawn(elsewhere))), TEXT);
            assert_eq!(block_on(not_needed.fallible()), None);
        }
        for spawned_late in [late.spawn(async {}), ends.spawn(async {}), drains.spawn(async {})] {
            assert_eq!(panic_of(|| block_on(spawned_late)), TEXT);
        }
    });
}

/// Objects that a runtime leaves behind: wakers of a root future and of a task, handles, tasks, reports of
/// its threads.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "its test counts descriptors"))]
struct Left(#[allow(dead_code, reason = "it is kept")] Vec<Box<dyn Any>>);

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "its test counts descriptors"))]
fn left_of_a_runtime() -> Left {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let mut left: Vec<Box<dyn Any>> = Vec::new();
    runtime.block_on(async {
        // Makes sure that a deputy exists, and a leader to interrupt.
        Timer::after(Duration::from_millis(1)).await;
        let (tell, told) = mpsc::channel();
        let task = runtime.spawn(poll_fn(move |cx| {
            let _ = tell.send(cx.waker().clone());
            Poll::<()>::Pending
        }));
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        left.push(Box::new(waker));
        left.push(Box::new(told.recv().unwrap()));
        left.push(Box::new(task.fallible()));
        let job = Job::new(|| ()).submit();
        left.push(Box::new(unblock(|| ()).fallible()));
        left.push(Box::new(job));
        left.push(Box::new(runtime.handle()));
        left.push(Box::new(runtime.threads()));
        left.push(Box::new(runtime.metrics()));
    });
    // Not in the default instance, which would open descriptors of its own when it first waits.
    left.push(Box::new(pollster::block_on(runtime.drain(Duration::ZERO))));
    Left(left)
}

/// Fails if the waker of a root future has a reference to the reactor.
#[cfg(target_os = "linux")]
#[test]
fn what_is_left_of_a_runtime_keeps_no_descriptor() {
    use crate::setups::is_child;
    if !is_child("outlives_runtime::what_is_left_of_a_runtime_keeps_no_descriptor", ":") {
        return;
    }
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    drop(left_of_a_runtime());
    let before = descriptors();
    let left: Vec<_> = (0..20).map(|_| left_of_a_runtime()).collect();
    eventually("the descriptors of twenty runtimes are closed", || descriptors() <= before);
    drop(left);
}
