//! Timers that outlive the runtime in which they were first polled: they fire all the same, wherever they are awaited.
//!
//! Fails without `Timers::close`, where a test says nothing else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Context;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, future};
use paceline::{Runtime, Timer, block_on};

use crate::setups::{Latch, eventually, for_each_builder, waker_that};

const SHORT: Duration = Duration::from_millis(20);

fn poll_in(runtime: &Runtime, timer: &mut Timer) {
    assert!(runtime.block_on(future::poll_once(timer)).is_none(), "it is due too soon");
}

/// Awaited by another `block_on` only after its runtime was dropped.
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

/// Awaited by another `block_on`, whose waker it has, while its runtime is dropped.
#[test]
fn a_timer_that_is_awaited_is_armed_anew() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let mut timer = Timer::after(Duration::from_millis(300));
        poll_in(&runtime, &mut timer);
        let start = Instant::now();
        block_on(async {
            assert!(future::poll_once(&mut timer).await.is_none());
            let dropping = thread::spawn(move || drop(runtime));
            timer.await;
            dropping.join().unwrap();
        });
        assert!(start.elapsed() < Duration::from_secs(5), "it was late");
    });
}

/// The task is woken by the end of the runtime, and polled with the waker that the timer has already: that must not count
/// as being armed. Fails without `Alarm::is_lost`.
#[test]
fn a_timer_that_was_lost_is_not_taken_for_armed() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let mut timer = Timer::after(Duration::from_millis(100));
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = waker_that({
            let wakes = wakes.clone();
            move || {
                wakes.fetch_add(1, SeqCst);
            }
        });
        let mut poll = || Pin::new(&mut timer).poll(&mut Context::from_waker(&waker));
        assert!(runtime.block_on(async { poll() }).is_pending());
        drop(runtime);
        // Some thread of its may be the last to go.
        eventually("the end of the runtime wakes", || wakes.load(SeqCst) == 1);
        assert!(poll().is_pending());
        eventually("it fires elsewhere", || wakes.load(SeqCst) == 2);
        assert!(poll().is_ready());
    });
}

/// The only worker is called for the first of two timers that are due, and goes for good. Fails without `Batch::drop`.
#[test]
fn a_timer_that_is_due_in_the_batch_is_not_lost() {
    for_each_builder(|setup| {
        let runtime = Arc::new(setup.builder().threads(1).max_threads(1).build().unwrap());
        let at = Instant::now() + SHORT;
        let (mut first, mut second) = (Timer::at(at), Timer::at(at));
        let woken = Latch::new();
        let armed = Latch::new();
        let last_one = {
            let (runtime, armed) = (std::sync::Mutex::new(Some(runtime.clone())), armed.clone());
            waker_that(move || {
                armed.wait();
                drop(runtime.lock().unwrap().take());
            })
        };
        let other = waker_that({
            let woken = woken.clone();
            move || woken.open()
        });
        runtime.block_on(async {
            assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&last_one)).is_pending());
            assert!(Pin::new(&mut second).poll(&mut Context::from_waker(&other)).is_pending());
        });
        drop(runtime);
        armed.open();
        woken.wait();
    });
}
