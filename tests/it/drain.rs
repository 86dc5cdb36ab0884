//! The graceful end of a runtime: tasks that can finish do, others are cancelled at the deadline, and stuck
//! ones are named.

use std::future::{Future, pending};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{DrainReport, Handle, Runtime, Timer, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::setups::{
    Latch, OpenOnDrop, SOON, eventually, for_each_builder, for_each_setup, for_setups, is_child,
};

pub const SHORT: Duration = Duration::from_millis(20);
pub const HOUR: Duration = Duration::from_secs(3600);

/// Counts the futures that were dropped.
#[derive(Debug, Clone, Default)]
pub struct Count(Arc<AtomicUsize>);

#[derive(Debug)]
pub struct One(Count);

impl Count {
    pub fn one(&self) -> One {
        One(self.clone())
    }

    pub fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        (self.0).0.fetch_add(1, SeqCst);
    }
}

/// Spawns a task that waits for ever, and is counted.
pub fn waits(runtime: &Runtime, count: &Count) {
    let one = count.one();
    let (tell, told) = mpsc::channel();
    runtime
        .spawn(async move {
            let _one = one;
            tell.send(()).unwrap();
            pending::<()>().await;
        })
        .detach();
    told.recv_soon().unwrap();
}

/// Spawns a task that blocks its thread until the latch is open. Returns the line of the caller, which is the
/// task's spawn line.
#[track_caller]
pub fn blocks(runtime: &Runtime, latch: &Latch) -> u32 {
    let latch = latch.clone();
    let (tell, told) = mpsc::channel();
    let task = runtime.spawn(async move {
        tell.send(()).unwrap();
        latch.wait();
    });
    task.detach();
    told.recv_soon().expect("a thread is added for it");
    Location::caller().line()
}

pub fn counts(report: &DrainReport) -> (usize, usize, usize) {
    (report.finished, report.cancelled, report.stuck.len())
}

/// All tasks finish, the last one long before the deadline: its end wakes the drain. Fails if the end of a
/// task does not look for the drain's mark.
#[test]
fn a_drain_returns_with_the_last_task() {
    for_each_setup(|runtime| {
        for number in 0..100 {
            runtime.spawn(Timer::after(Duration::from_millis(number % 10))).detach();
        }
        let report = runtime.block_on(runtime.drain(HOUR));
        assert!(report.is_clean() && report.finished <= 100, "{report}");
        assert_eq!((runtime.metrics().tasks, runtime.metrics().workers), (Some(0), 0));
    });
}

/// One task at a time, so that each end is the last one.
#[test]
fn no_last_end_is_missed() {
    for_setups(
        |setup| setup.threads == 2,
        |setup, _| {
            for round in 0..50 {
                let runtime = setup.build();
                let (go, gone) = (Arc::new(AtomicBool::new(false)), Count::default());
                for _ in 0..3 {
                    let (go, one) = (go.clone(), gone.one());
                    runtime
                        .spawn(async move {
                            let _one = one;
                            while !go.load(SeqCst) {
                                future::yield_now().await;
                            }
                        })
                        .detach();
                }
                let mut drain = Box::pin(runtime.drain(HOUR));
                assert!(future::block_on(future::poll_once(&mut drain)).is_none());
                let opener = thread::spawn(move || {
                    thread::sleep(Duration::from_micros(round * 7));
                    go.store(true, SeqCst);
                });
                let report = block_on(drain);
                opener.join().unwrap();
                assert_eq!((counts(&report), gone.get()), ((3, 0, 0), 3));
            }
        },
    );
}

/// From its first poll on, a drain refuses tasks from outside, and running tasks go on as before: the tasks
/// that they spawn have the same deadline.
#[test]
fn only_tasks_that_are_left_may_spawn_meanwhile() {
    for_each_setup(|runtime| {
        let count = Count::default();
        let (one, other) = (count.one(), count.one());
        let (go, may_go) = async_channel::bounded::<()>(1);
        let last = runtime.spawn(async move {
            let _ = may_go.recv().await;
            let child = async move {
                future::yield_now().await;
                spawn(async move { drop(other) }).detach();
                drop(one);
                7
            };
            spawn(child).await
        });
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })), 1, "it has not begun");
        assert!(future::block_on(future::poll_once(&mut drain)).is_none());
        assert_eq!(future::block_on(runtime.spawn(async { 1 }).fallible()), None);
        go.close();
        assert_eq!(future::block_on(last), 7);
        let report = future::block_on(drain);
        assert_eq!((report.is_clean(), report.finished, count.get()), (true, 3, 2), "{report}");
    });
}

/// A task that spawns its successor, without end, does not postpone the end of a drain: at the deadline, the
/// chain is cancelled. If the deadline comes while a task of the chain is being polled, both this task and
/// its successor are cancelled.
#[test]
fn a_chain_of_tasks_ends_at_the_deadline() {
    fn next(alive: Arc<()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let own = alive.clone();
        Box::pin(async move {
            Timer::after(Duration::from_millis(1)).await;
            spawn(next(alive)).detach();
            drop(own);
        })
    }
    for_each_setup(|runtime| {
        let alive = Arc::new(());
        runtime.spawn(next(alive.clone())).detach();
        let report = block_on(runtime.drain(Duration::from_millis(30)));
        assert!(report.cancelled >= 1, "{report}");
        assert_eq!((runtime.metrics().tasks, Arc::strong_count(&alive)), (Some(0), 1), "{report}");
    });
}

#[test]
fn what_has_not_finished_by_the_deadline_is_cancelled() {
    for_each_setup(|runtime| {
        let count = Count::default();
        (0..5).for_each(|_| waits(runtime, &count));
        let (one, stop) = (count.one(), Count::default());
        let turns = stop.clone();
        runtime
            .spawn(async move {
                let _one = one;
                loop {
                    turns.0.fetch_add(1, SeqCst);
                    future::yield_now().await;
                }
            })
            .detach();
        let (go, may_go) = async_channel::bounded::<()>(1);
        let quick = runtime.spawn(async move {
            let _ = may_go.recv().await;
            Timer::after(Duration::from_millis(1)).await;
        });
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert!(future::block_on(future::poll_once(&mut drain)).is_none());
        go.close();
        eventually("the quick one finishes", || quick.is_finished() && runtime.metrics().tasks == Some(6));
        // The nearer deadline counts.
        let start = Instant::now();
        let report = future::block_on(runtime.drain(SHORT));
        let took = start.elapsed();
        assert!(took >= SHORT, "{took:?}");
        assert_eq!((counts(&report), count.get()), ((1, 6, 0), 6), "{report}");
        assert_eq!(counts(&future::block_on(drain)), (1, 6, 0));
        assert!(report.to_string().contains(": 1 task finished, 6 were cancelled"), "{report}");
        // A second drain.
        assert_eq!(counts(&future::block_on(runtime.drain(HOUR))), (1, 6, 0));
    });
}

/// 10 000 tasks, 1 000 of them in timers an hour away, and 3 that block their threads.
#[test]
fn many_tasks_and_some_that_are_stuck() {
    for_each_setup(|runtime| {
        const ALL: usize = if cfg!(miri) { 100 } else { 10_000 };
        const FAR: usize = ALL / 10;
        let (latch, count) = (Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        let first = blocks(runtime, &latch);
        let second = blocks(runtime, &latch);
        let third = blocks(runtime, &latch);
        let lines = [first, second, third];
        let (go, may_go) = async_channel::bounded::<()>(1);
        for number in 0..ALL - 3 {
            let (one, may_go) = (count.one(), may_go.clone());
            let far = number < FAR;
            let task = async move {
                let _one = one;
                let _ = may_go.recv().await;
                Timer::after(if far { HOUR } else { Duration::from_millis(1) }).await;
            };
            runtime.spawn(task).detach();
        }
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert!(future::block_on(future::poll_once(&mut drain)).is_none());
        go.close();
        eventually("most of them finish", || runtime.metrics().tasks == Some(FAR + 3));
        let deadline = Duration::from_millis(100);
        let start = Instant::now();
        let report = future::block_on(runtime.drain(deadline));
        let took = start.elapsed();
        assert_eq!(count.get(), ALL - 3, "each destructor has run");
        assert!(took >= deadline, "{took:?}");
        assert_eq!((counts(&report), report.undropped), ((ALL - FAR - 3, FAR, 3), 0), "{report}");
        let mut stuck: Vec<_> = report.stuck.iter().map(|stuck| stuck.spawned_at.unwrap().line()).collect();
        stuck.sort_unstable();
        assert_eq!(stuck, lines, "{report}");
        assert!(report.to_string().contains("3 threads are stuck: worker-"), "{report}");
        drop(free);
        eventually("the threads end", || runtime.metrics().workers == 0);
        assert_eq!(runtime.metrics().tasks, Some(0));
    });
}

/// All threads that may exist are stuck, so that no worker can cancel the remaining tasks. Fails without the
/// threads that the drain starts for that.
#[test]
fn tasks_are_cancelled_although_all_threads_are_stuck() {
    for_each_builder(|setup| {
        let runtime = setup.builder().max_threads(setup.threads).build().unwrap();
        let (latch, count) = (Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        (0..10).for_each(|_| waits(&runtime, &count));
        (0..setup.threads).for_each(|_| _ = blocks(&runtime, &latch));
        let report = block_on(runtime.drain(SHORT));
        assert_eq!((counts(&report), count.get()), ((0, 10, setup.threads), 10));
        drop(free);
    });
}

/// A deadline of zero leaves no time, and a deadline that overflows leaves unlimited time.
#[test]
fn deadlines_of_zero_and_without_end() {
    for_each_builder(|setup| {
        let (runtime, count) = (setup.build(), Count::default());
        waits(&runtime, &count);
        assert_eq!((counts(&block_on(runtime.drain(Duration::ZERO))), count.get()), ((0, 1, 0), 1));
        let runtime = setup.build();
        let (go, may_go) = async_channel::bounded::<()>(1);
        runtime.spawn(async move { _ = may_go.recv().await }).detach();
        let mut drain = Box::pin(runtime.drain(Duration::MAX));
        assert!(block_on(future::poll_once(&mut drain)).is_none());
        go.close();
        assert_eq!(counts(&block_on(drain)), (1, 0, 0));
        let idle = setup.build();
        assert_eq!(counts(&block_on(idle.drain(Duration::MAX))), (0, 0, 0));
    });
}

/// A task of the runtime drains it, is cancelled with the others, and holds nothing up.
#[test]
fn in_a_task_of_the_runtime() {
    for_each_setup(|runtime| {
        let count = Count::default();
        waits(runtime, &count);
        let (tell, told) = mpsc::channel();
        let one = count.one();
        runtime
            .spawn(async move {
                let _one = one;
                tell.send(()).unwrap();
                let report = Handle::current().drain(SHORT).await;
                unreachable!("it is cancelled: {report}");
            })
            .detach();
        told.recv_soon().unwrap();
        let report = block_on(runtime.drain(HOUR));
        assert_eq!((counts(&report), count.get()), ((0, 2, 0), 2), "{report}");
    });
}

/// A drain in another library's `block_on` that is nested in a task: the drain does not wait for the task,
/// and the thread, which has the report then, counts as stuck.
#[test]
fn in_a_foreign_block_on() {
    for_each_setup(|runtime| {
        let count = Count::default();
        waits(runtime, &count);
        let (tell, told) = mpsc::channel();
        let task = async move { tell.send(pollster::block_on(Handle::current().drain(SHORT))).unwrap() };
        runtime.spawn(task).detach();
        let report = told.recv_soon().expect("it gets the report");
        assert_eq!((counts(&report), count.get()), ((0, 1, 1), 1), "{report}");
        eventually("the threads end", || runtime.metrics().workers == 0);
    });
}

/// Two drains in each of several tasks, and no other task. Fails if the drain waits for one of them.
#[test]
fn tasks_that_wait_for_the_report_do_not_hold_it_up() {
    for_each_setup(|runtime| {
        // Once one of them has asked, no other is accepted.
        let (go, may_go) = async_channel::bounded::<()>(1);
        for _ in 0..5 {
            let may_go = may_go.clone();
            runtime
                .spawn(async move {
                    let _ = may_go.recv().await;
                    let both = future::zip(Handle::current().drain(HOUR), Handle::current().drain(HOUR));
                    both.await;
                    unreachable!("it is cancelled");
                })
                .detach();
        }
        go.close();
        let report = block_on(runtime.drain(HOUR));
        assert!(report.finished == 0 && report.cancelled == 5 && report.stuck.is_empty(), "{report}");
    });
}

/// A drain goes on after its future was dropped, and counts the task that dropped it.
#[test]
fn a_drain_that_is_dropped_goes_on() {
    for_each_setup(|runtime| {
        let count = Count::default();
        waits(runtime, &count);
        let one = count.one();
        let (tell, told) = mpsc::channel();
        runtime
            .spawn(async move {
                let _one = one;
                let mut drain = Box::pin(Handle::current().drain(20 * SHORT));
                assert!(future::poll_once(&mut drain).await.is_none());
                drop(drain);
                tell.send(()).unwrap();
                pending::<()>().await;
            })
            .detach();
        told.recv_soon().unwrap();
        assert_eq!((counts(&block_on(runtime.drain(HOUR))), count.get()), ((0, 2, 0), 2));
    });
}

/// The runtime is shut down, or dropped, during a drain with a deadline of an hour.
#[test]
fn a_shutdown_cuts_a_drain_short() {
    for_each_builder(|setup| {
        for drop_it in [false, true] {
            let (runtime, count) = (setup.build(), Count::default());
            waits(&runtime, &count);
            let (tell, told) = mpsc::channel();
            let (started, has_started) = mpsc::channel();
            runtime
                .spawn(async move {
                    let mut drain = Box::pin(Handle::current().drain(HOUR));
                    assert!(future::poll_once(&mut drain).await.is_none());
                    started.send(()).unwrap();
                    drain.await;
                })
                .detach();
            has_started.recv_soon().unwrap();
            let drain = runtime.drain(HOUR);
            let other = thread::spawn(move || tell.send(block_on(drain)).unwrap());
            if drop_it {
                drop(runtime);
            } else {
                runtime.shutdown(SOON).unwrap();
            }
            let first = told.recv_soon().expect("the report comes");
            other.join().unwrap();
            assert_eq!(counts(&first), (0, 2, 0), "{first}");
            assert_eq!(count.get(), 1);
        }
    });
}

/// Nothing is left to finish, but a stuck task is named.
#[test]
fn after_a_shutdown() {
    for_each_setup(|runtime| {
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let line = blocks(runtime, &latch);
        runtime.shutdown(Duration::from_millis(5)).expect_err("it is stuck");
        let report = block_on(runtime.drain(HOUR));
        assert_eq!(counts(&report), (0, 0, 1));
        assert_eq!(report.stuck[0].spawned_at.map(|at| at.line()), Some(line));
        drop(free);
    });
}

/// The default instance's tasks end for good; `block_on`, sources and timers go on.
#[test]
fn the_default_instance_is_drained() {
    if !is_child("drain::the_default_instance_is_drained", ":") {
        return;
    }
    block_on(async {
        let (stop, stopped) = async_channel::bounded::<()>(1);
        spawn(async move { stopped.recv().await.is_err() }).detach();
        assert_eq!(paceline::unblock(|| 7).await, 7);
        let mut drain = Box::pin(Handle::current().drain(HOUR));
        assert!(future::poll_once(&mut drain).await.is_none());
        assert_eq!(spawn(async {}).fallible().await, None);
        drop(stop);
        assert_eq!(counts(&drain.await), (1, 0, 0));
        Timer::after(Duration::from_millis(1)).await;
    });
    assert_eq!(block_on(spawn(async {}).fallible()), None);
    let elsewhere = thread::spawn(|| block_on(spawn(async {}).fallible()));
    assert_eq!(elsewhere.join().unwrap(), None);
    assert_eq!(block_on(paceline::unblock(|| ()).fallible()), None);
    assert_eq!((paceline::metrics().workers, paceline::metrics().tasks), (0, Some(0)));
    let runtime = Runtime::builder().threads(1).build().unwrap();
    assert_eq!(runtime.block_on(async { spawn(async { 7 }).await }), 7);
}

/// A drain before the first task finds nothing to wait for, and refuses later tasks.
#[test]
fn the_default_instance_is_drained_before_its_first_task() {
    if !is_child("drain::the_default_instance_is_drained_before_its_first_task", ":") {
        return;
    }
    let report = block_on(async { Handle::current().drain(HOUR).await });
    assert_eq!(counts(&report), (0, 0, 0));
    assert_eq!(block_on(spawn(async {}).fallible()), None);
    assert_eq!(paceline::metrics().workers, 0);
}

/// A task of the default instance drains it.
#[test]
fn a_task_drains_the_default_instance() {
    if !is_child("drain::a_task_drains_the_default_instance", ":") {
        return;
    }
    let report = block_on(async {
        spawn(std::future::pending::<()>()).detach();
        spawn(Handle::current().drain(SHORT)).detach();
        Handle::current().drain(HOUR).await
    });
    assert_eq!(counts(&report), (0, 2, 0));
}

/// An installed instance is drained, too.
#[test]
fn an_installed_instance_is_drained() {
    if !is_child("drain::an_installed_instance_is_drained", ":") {
        return;
    }
    Runtime::builder().threads(1).install().unwrap();
    let report = block_on(async {
        spawn(std::future::pending::<()>()).detach();
        Handle::current().drain(SHORT).await
    });
    assert_eq!(counts(&report), (0, 1, 0));
    assert_eq!(block_on(spawn(async {}).fallible()), None);
}
