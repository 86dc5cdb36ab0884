//! The graceful end of a runtime: what may finish does, what may not is cancelled, and what is stuck is named.

use std::future::{Future, pending};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Drained, Handle, Runtime, Timer, block_on, spawn};

use crate::setups::{Latch, OpenOnDrop, SOON, eventually, for_each_builder, for_each_setup, for_setups};

pub const SHORT: Duration = Duration::from_millis(20);
pub const HOUR: Duration = Duration::from_secs(3600);
/// By how much it may be late: 50 milliseconds, where nobody else wants the cores. Who has none is waited for.
const LATE: Duration = if cfg!(debug_assertions) { SOON } else { Duration::from_millis(50) };

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

/// A task that waits for ever, and is counted.
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
    told.recv_timeout(SOON).unwrap();
}

/// A task that blocks its thread until the latch is open. Returns the line where this was called: there it was spawned.
#[track_caller]
pub fn blocks(runtime: &Runtime, latch: &Latch) -> u32 {
    let latch = latch.clone();
    let (tell, told) = mpsc::channel();
    let task = runtime.spawn(async move {
        tell.send(()).unwrap();
        latch.wait();
    });
    task.detach();
    told.recv_timeout(SOON).expect("a thread is added for it");
    Location::caller().line()
}

pub fn counts(report: &Drained) -> (usize, usize, usize) {
    (report.finished, report.cancelled, report.stuck.len())
}

/// All finish, the last one long before the deadline: it wakes who waits. Fails if an end does not look for the mark.
#[test]
fn it_returns_with_the_last_task() {
    for_each_setup(|runtime| {
        for number in 0..100 {
            runtime.spawn(Timer::after(Duration::from_millis(number % 10))).detach();
        }
        let start = Instant::now();
        let report = runtime.block_on(runtime.drain(HOUR));
        assert!(start.elapsed() < SOON);
        assert!(report.is_clean() && report.finished <= 100, "{report}");
        assert_eq!((runtime.metrics().tasks, runtime.metrics().workers), (Some(0), 0));
    });
}

/// Each with one task at a time, so that each end is the last one.
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
                let start = Instant::now();
                let mut drain = Box::pin(runtime.drain(HOUR));
                assert!(future::block_on(future::poll_once(&mut drain)).is_none());
                let opener = thread::spawn(move || {
                    thread::sleep(Duration::from_micros(round * 7));
                    go.store(true, SeqCst);
                });
                let report = block_on(drain);
                opener.join().unwrap();
                assert_eq!((counts(&report), gone.get()), ((3, 0, 0), 3));
                assert!(start.elapsed() < SOON);
            }
        },
    );
}

/// Nothing new from outside or from tasks that are left, from the first poll on.
#[test]
fn what_is_spawned_meanwhile_is_cancelled() {
    for_each_setup(|runtime| {
        let count = Count::default();
        let one = count.one();
        let (go, may_go) = async_channel::bounded::<()>(1);
        let last = runtime.spawn(async move {
            let _ = may_go.recv().await;
            spawn(async move { drop(one) }).fallible().await
        });
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })), 1, "it has not begun");
        assert!(future::block_on(future::poll_once(&mut drain)).is_none());
        assert_eq!(future::block_on(runtime.spawn(async { 1 }).fallible()), None);
        go.close();
        assert_eq!(future::block_on(last), None);
        assert_eq!(count.get(), 1);
        assert!(future::block_on(drain).is_clean());
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
        let (start, deadline) = (Instant::now(), 25 * SHORT);
        let mut drain = Box::pin(runtime.drain(deadline));
        assert!(future::block_on(future::poll_once(&mut drain)).is_none());
        go.close();
        let report = future::block_on(drain);
        assert!(start.elapsed() >= deadline && start.elapsed() < deadline + LATE, "{:?}", start.elapsed());
        assert_eq!((counts(&report), count.get()), ((1, 6, 0), 6), "{report}");
        assert!(quick.is_finished());
        assert!(report.to_string().contains(": 1 task finished, 6 were cancelled"), "{report}");
        // And once more.
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
        assert!(took >= deadline && took < deadline + LATE, "{took:?}");
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

/// All threads there may be are stuck, so that there is nobody to cancel the rest. Fails without the hired hand.
#[test]
fn nobody_is_free_to_cancel_the_rest() {
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

/// A deadline of zero leaves no time, and one that overflows all of it.
#[test]
fn deadlines_that_are_none() {
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

/// In one of its own tasks: that one is not counted, gets the report, and ends at its next await.
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
                let report = Handle::current().drain(SHORT).await;
                tell.send(report).unwrap();
                pending::<()>().await;
            })
            .detach();
        let report = told.recv_timeout(SOON).expect("it gets the report");
        assert_eq!(counts(&report), (0, 1, 0), "{report}");
        eventually("it is cancelled", || count.get() == 2);
        eventually("nothing is left", || runtime.metrics().tasks == Some(0));
    });
}

/// In a `block_on` that is nested in a task: its thread is not stuck.
#[test]
fn in_a_nested_block_on() {
    in_a_task_that_blocks_on_it(block_on);
}

/// The same with somebody else's. Fails if only ours is known.
#[test]
fn in_a_foreign_block_on() {
    in_a_task_that_blocks_on_it(pollster::block_on);
}

type Draining = Pin<Box<dyn Future<Output = Drained> + Send>>;

fn in_a_task_that_blocks_on_it(block_on: fn(Draining) -> Drained) {
    for_each_setup(move |runtime| {
        let count = Count::default();
        waits(runtime, &count);
        let (tell, told) = mpsc::channel();
        let task = async move { tell.send(block_on(Box::pin(Handle::current().drain(SHORT)))).unwrap() };
        runtime.spawn(task).detach();
        let report = told.recv_timeout(SOON).expect("it gets the report");
        assert_eq!((counts(&report), count.get()), ((0, 1, 0), 1), "{report}");
        eventually("the threads end", || runtime.metrics().workers == 0);
    });
}

/// Two drains in each of several tasks. Fails if tasks that wait for the report are not kept.
#[test]
fn several_tasks_get_the_report() {
    for_each_setup(|runtime| {
        let (count, asked) = (Count::default(), Count::default());
        waits(runtime, &count);
        let (tell, told) = mpsc::channel();
        let go = async_channel::bounded::<()>(1);
        for _ in 0..5 {
            let (tell, go, one) = (tell.clone(), go.1.clone(), asked.one());
            runtime
                .spawn(async move {
                    let _ = go.recv().await;
                    let both = future::zip(Handle::current().drain(HOUR), Handle::current().drain(HOUR));
                    let mut both = Box::pin(both);
                    assert!(future::poll_once(&mut both).await.is_none());
                    drop(one);
                    let both = both.await;
                    assert_eq!(both.0.took, both.1.took);
                    tell.send(both.0).unwrap();
                })
                .detach();
        }
        drop((tell, go));
        eventually("all wait", || asked.get() == 5);
        assert_eq!(counts(&future::block_on(runtime.drain(Duration::ZERO))), (0, 1, 0));
        let reports: Vec<_> = told.iter().collect();
        assert_eq!((reports.len(), count.get()), (5, 1));
        assert!(reports.iter().all(|report| counts(report) == (0, 1, 0)), "{reports:?}");
    });
}

/// All threads are stuck, and the task that waits has none to be polled by. Fails if the conductor does not poll it.
#[test]
fn a_task_gets_the_report_although_all_threads_are_stuck() {
    for_each_builder(|setup| {
        let runtime = setup.builder().max_threads(setup.threads).build().unwrap();
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (tell, told) = mpsc::channel();
        let begun = Latch::new();
        let has_begun = begun.clone();
        let (go, may_go) = async_channel::bounded(1);
        runtime
            .spawn(async move {
                may_go.recv().await.unwrap();
                let mut drain = Box::pin(Handle::current().drain(HOUR));
                assert!(future::poll_once(&mut drain).await.is_none());
                has_begun.open();
                tell.send(drain.await).unwrap();
            })
            .detach();
        let (blocking, blocked) = ((0..setup.threads).map(|_| latch.clone()), Count::default());
        // Spawned before the drain begins, run when they come.
        for latch in blocking {
            let (begun, one) = (begun.clone(), blocked.one());
            runtime
                .spawn(async move {
                    while !begun.is_open() {
                        future::yield_now().await;
                    }
                    drop(one);
                    latch.wait();
                })
                .detach();
        }
        go.try_send(()).unwrap();
        eventually("all block", || blocked.get() == setup.threads);
        block_on(runtime.drain(Duration::ZERO));
        let report = told.recv_timeout(SOON).expect("somebody polls it");
        assert_eq!(report.stuck.len(), setup.threads, "{report}");
        drop(free);
    });
}

/// It goes on when it is dropped; and does not count the task that has given it up.
#[test]
fn one_that_is_given_up_goes_on() {
    for_each_setup(|runtime| {
        let count = Count::default();
        waits(runtime, &count);
        let one = count.one();
        let (tell, told) = mpsc::channel();
        runtime
            .spawn(async move {
                let _one = one;
                let _ = paceline::timeout(SHORT, Handle::current().drain(20 * SHORT)).await;
                tell.send(()).unwrap();
                pending::<()>().await;
            })
            .detach();
        told.recv_timeout(SOON).unwrap();
        assert_eq!((counts(&block_on(runtime.drain(HOUR))), count.get()), ((0, 2, 0), 2));
    });
}

/// Shut down, or dropped, while somebody drains it for an hour.
#[test]
fn an_end_in_haste_cuts_it_short() {
    for_each_builder(|setup| {
        for drop_it in [false, true] {
            let (runtime, count) = (setup.build(), Count::default());
            waits(&runtime, &count);
            let (tell, told) = mpsc::channel();
            let (started, has_started) = mpsc::channel();
            let inside = tell.clone();
            runtime
                .spawn(async move {
                    let mut drain = Box::pin(Handle::current().drain(HOUR));
                    assert!(future::poll_once(&mut drain).await.is_none());
                    started.send(()).unwrap();
                    inside.send(drain.await).unwrap();
                })
                .detach();
            has_started.recv_timeout(SOON).unwrap();
            let drain = runtime.drain(HOUR);
            let other = thread::spawn(move || tell.send(block_on(drain)).unwrap());
            if drop_it {
                drop(runtime);
            } else {
                runtime.shutdown(SOON).unwrap();
            }
            let first = told.recv_timeout(SOON).expect("the report comes");
            other.join().unwrap();
            assert_eq!(counts(&first), (0, 1, 0), "{first}");
            assert_eq!(count.get(), 1);
        }
    });
}

/// Nothing is left to finish, but what is stuck is named.
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

/// A runtime that is dropped afterwards waits for nobody.
#[test]
fn a_drop_after_it_does_not_wait() {
    for_each_builder(|setup| {
        let does_not_wait = || {
            let runtime = setup.build();
            let latch = Latch::new();
            let _free = OpenOnDrop(latch.clone());
            blocks(&runtime, &latch);
            assert_eq!(block_on(runtime.drain(Duration::ZERO)).stuck.len(), 1);
            let start = Instant::now();
            drop(runtime);
            start.elapsed() < Duration::from_millis(90)
        };
        // Who has no core may be late; who waits always is.
        assert!((0..10).any(|_| does_not_wait()));
    });
}

#[test]
fn the_default_instance_is_not_drained() {
    let panic = std::panic::catch_unwind(|| drop(block_on(async { Handle::current() }).drain(SHORT)));
    let text = crate::setups::text_of(&*panic.unwrap_err()).to_string();
    assert!(text.contains("the default instance is not drained"), "{text}");
}
