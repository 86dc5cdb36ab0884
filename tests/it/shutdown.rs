//! Shutting down from anywhere, in time, with nothing left behind.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, OnceLock, Weak, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, future};
use paceline::{Executor, Runtime, Timer, unblock};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, SOON, eventually, for_each_builder, for_each_setup, pair};

/// Counts the futures that were dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Spawns tasks that wait for ever, for each kind of event.
fn waiting_tasks(runtime: &Runtime) -> Arc<AtomicUsize> {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (started, has_started) = mpsc::channel();
    let [one, two, three] = [0; 3].map(|_| (Dropped(dropped.clone()), started.clone()));
    let far = runtime.spawn(async move {
        one.1.send(()).unwrap();
        Timer::after(Duration::from_secs(3600)).await;
        drop(one);
    });
    let silent = runtime.spawn(async move {
        let (mut socket, other) = pair();
        two.1.send(()).unwrap();
        let _ = socket.read(&mut [0]).await;
        drop((two, other));
    });
    let never = runtime.spawn(async move {
        three.1.send(()).unwrap();
        pending::<()>().await;
        drop(three);
    });
    [far, silent, never].into_iter().for_each(paceline::Task::detach);
    (0..3).for_each(|_| has_started.recv_soon().unwrap());
    dropped
}

/// From the outside, while all threads sleep and timers are far away; and again.
#[test]
fn a_pool_that_sleeps_can_be_shut_down_twice() {
    for_each_setup(|runtime| {
        let dropped = waiting_tasks(runtime);
        runtime.shutdown(SOON).expect("no task blocks");
        assert_eq!(dropped.load(SeqCst), 3, "futures are left");
        runtime.shutdown(SOON).expect("it is down already");
        assert_eq!(runtime.metrics().workers, 0);
        assert_eq!(runtime.metrics().tasks, Some(0));
    });
}

/// From inside a task, which does not wait for itself.
#[test]
fn shutdown_from_inside_a_task_does_not_wait_for_it() {
    for_each_setup(|runtime| {
        let dropped = waiting_tasks(runtime);
        let (tell, told) = mpsc::channel();
        let runtime2 = runtime.clone();
        runtime
            .spawn(async move {
                tell.send(runtime2.shutdown(SOON).is_ok()).unwrap();
                drop(runtime2);
                pending::<()>().await;
            })
            .detach();
        assert!(told.recv_soon().expect("shutdown returns"));
        runtime.shutdown(SOON).unwrap();
        eventually("all futures are dropped", || dropped.load(SeqCst) == 3);
    });
}

/// From inside two tasks at once: neither waits for the other one's thread.
#[test]
fn shutdown_from_inside_two_tasks_at_once_waits_for_neither() {
    for_each_setup(|runtime| {
        let dropped = waiting_tasks(runtime);
        let (tell, told) = mpsc::channel();
        let both_run = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let (runtime2, tell, both_run) = (runtime.clone(), tell.clone(), both_run.clone());
            let task = async move {
                both_run.wait();
                tell.send(runtime2.shutdown(SOON)).unwrap();
            };
            runtime.spawn(task).detach();
        }
        for _ in 0..2 {
            told.recv_soon().expect("shutdown returns").expect("no task blocks");
        }
        runtime.shutdown(SOON).unwrap();
        assert_eq!(runtime.metrics().workers, 0);
        eventually("all futures are dropped", || dropped.load(SeqCst) == 3);
    });
}

/// From the root future of a `block_on`, and from two threads at once.
#[test]
fn shutdown_from_guests_returns() {
    for_each_setup(|runtime| {
        let dropped = waiting_tasks(runtime);
        let runtime2 = runtime.clone();
        let other = thread::spawn(move || runtime2.block_on(async { runtime2.shutdown(SOON) }));
        runtime.block_on(async { runtime.shutdown(SOON) }).unwrap();
        other.join().unwrap().unwrap();
        assert_eq!(dropped.load(SeqCst), 3);
        // A guest may still wait: the reactor exists as long as a thread uses it.
        runtime.block_on(async { Timer::after(Duration::from_millis(1)).await });
    });
}

/// From hooks: of a worker that starts, and of the deputy that reports a stall.
#[test]
fn shutdown_from_hooks_returns() {
    for_each_builder(|setup| {
        let cell: Arc<OnceLock<Weak<Runtime>>> = Arc::default();
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (tell, told) = mpsc::channel();
        let hook = {
            let (cell, latch) = (cell.clone(), latch.clone());
            move |_: &paceline::Stall| {
                if let Some(runtime) = cell.get().and_then(Weak::upgrade) {
                    let stuck = runtime.shutdown(Duration::from_millis(10)).is_err();
                    latch.open();
                    let _ = tell.send(stuck);
                }
            }
        };
        let runtime = Arc::new(setup.builder().on_stall(hook).build().unwrap());
        let dropped = waiting_tasks(&runtime);
        cell.set(Arc::downgrade(&runtime)).unwrap();
        runtime.spawn(async move { latch.wait() }).detach();
        assert!(told.recv_soon().expect("the stall is reported"), "one task blocks");
        drop(free);
        runtime.shutdown(SOON).unwrap();
        eventually("all futures are dropped", || dropped.load(SeqCst) == 3);
    });
}

/// While all workers are busy: they stop after their current polls. Twice at once.
#[test]
fn shutdown_while_all_are_busy_waits_for_their_polls() {
    for_each_setup(|runtime| {
        let stop = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicUsize::new(0));
        for _ in 0..8 {
            let (stop, turns) = (stop.clone(), turns.clone());
            runtime
                .spawn(async move {
                    while !stop.load(SeqCst) {
                        turns.fetch_add(1, SeqCst);
                        future::yield_now().await;
                    }
                })
                .detach();
        }
        eventually("the tasks run", || turns.load(SeqCst) > 8);
        let runtime2 = runtime.clone();
        let other = thread::spawn(move || runtime2.shutdown(SOON));
        runtime.shutdown(SOON).expect("yielding tasks do not block");
        other.join().unwrap().unwrap();
        assert!(!stop.load(SeqCst));
        let turns_then = turns.load(SeqCst);
        thread::yield_now();
        assert_eq!(turns.load(SeqCst), turns_then, "a thread still runs tasks");
    });
}

/// The last handle is dropped inside one of the runtime's own tasks.
#[test]
fn the_last_handle_may_be_dropped_inside_a_task() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let dropped = waiting_tasks(&runtime);
        let cell = Arc::new(OnceLock::<Runtime>::new());
        let cell2 = cell.clone();
        let (tell, told) = mpsc::channel();
        let latch = Latch::new();
        let latch2 = latch.clone();
        runtime
            .spawn(async move {
                latch2.wait();
                drop(cell2);
                tell.send(()).unwrap();
            })
            .detach();
        cell.set(runtime).unwrap();
        drop(cell);
        latch.open();
        told.recv_soon().expect("the drop returns");
        eventually("all futures are dropped", || dropped.load(SeqCst) == 3);
    });
}

/// `shutdown` returns in time and names stuck tasks; other tasks are cancelled.
#[test]
fn shutdown_does_not_wait_for_ever_and_names_stuck_tasks() {
    for_each_setup(|runtime| {
        Ping::new(runtime);
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (blocks, is_blocking) = mpsc::channel();
        let line = line!() + 1;
        let stuck = runtime.spawn(async move {
            blocks.send(()).unwrap();
            latch.wait();
        });
        stuck.detach();
        is_blocking.recv_soon().unwrap();
        let start = Instant::now();
        let error = runtime.shutdown(Duration::from_millis(30)).expect_err("a task blocks");
        assert!(start.elapsed() >= Duration::from_millis(30));
        let text = error.to_string();
        assert!(text.contains(&format!("shutdown.rs:{line}")) && text.contains("worker-"), "{text}");
        drop(free);
        runtime.shutdown(SOON).expect("now it ends");
    });
}

/// "Cancels all tasks": tasks that do not block are not delayed by one that does.
#[test]
fn other_tasks_are_cancelled_although_one_is_stuck() {
    for_each_setup(|runtime| {
        let dropped = waiting_tasks(runtime);
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (blocks, is_blocking) = mpsc::channel();
        let stuck = runtime.spawn(async move {
            blocks.send(()).unwrap();
            latch.wait();
        });
        stuck.detach();
        is_blocking.recv_soon().unwrap();
        runtime.shutdown(Duration::from_millis(20)).expect_err("a task blocks");
        // Not at once, if the thread that drops them waits for a core.
        eventually("futures do not wait for a task that has nothing to do with them", || {
            dropped.load(SeqCst) == 3
        });
        drop(free);
    });
}

/// The only thread for closures is busy until the latch opens.
fn busy_closure(runtime: &Runtime) -> OpenOnDrop {
    let (latch, begun) = (Latch::new(), Latch::new());
    let (has_begun, wait) = (begun.clone(), latch.clone());
    runtime.block_on(async {
        unblock(move || {
            has_begun.open();
            wait.wait();
        })
        .detach();
    });
    begun.wait();
    OpenOnDrop(latch)
}

/// The only worker holds a lock and waits, in a foreign `block_on`, for a closure that has not begun. The
/// destructor of another task takes the lock. Fails if that destructor runs before the closure is cancelled.
#[test]
fn a_closure_that_a_worker_waits_for_is_cancelled_first() {
    struct WantsLock(Arc<Mutex<()>>);
    impl Drop for WantsLock {
        fn drop(&mut self) {
            drop(self.0.lock());
        }
    }
    let runtime = Runtime::builder().threads(1).max_threads(1).blocking_threads(1).build().unwrap();
    let _free = busy_closure(&runtime);
    let lock = Arc::new(Mutex::new(()));
    let (wants, waits) = (WantsLock(lock.clone()), Latch::new());
    let is_waiting = waits.clone();
    runtime
        .spawn(async move {
            is_waiting.open();
            pending::<()>().await;
            drop(wants);
        })
        .detach();
    waits.wait();
    let (locked, is_locked) = mpsc::channel();
    let holder = runtime.spawn(async move {
        let held = lock.lock();
        let closure = unblock(|| ()).fallible();
        locked.send(()).unwrap();
        let output = pollster::block_on(closure);
        drop(held);
        output
    });
    holder.detach();
    is_locked.recv_soon().unwrap();
    runtime.shutdown(SOON).expect("the worker gets on");
}

/// Fails if a thread that drops one closure after the other is taken for a stuck one.
#[test]
fn destructors_of_closures_that_never_begin_are_waited_for() {
    struct Slow {
        _counted: Dropped,
    }
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    const CLOSURES: usize = 100;
    let runtime = Runtime::builder().threads(1).blocking_threads(1).build().unwrap();
    let _free = busy_closure(&runtime);
    let dropped = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        for _ in 0..CLOSURES {
            let slow = Slow { _counted: Dropped(dropped.clone()) };
            unblock(move || drop(slow)).detach();
        }
    });
    runtime.shutdown(SOON).expect("no task is left");
    assert_eq!(dropped.load(SeqCst), CLOSURES);
}

/// Dropping does not wait for a task that blocks, and the stuck thread ends when its task does.
#[test]
fn drop_is_bounded() {
    for_each_builder(|setup| {
        let runtime = setup.build();
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (tell, told) = mpsc::channel();
        let held = tell.clone();
        runtime
            .spawn(async move {
                tell.send(()).unwrap();
                latch.wait();
                drop(held);
            })
            .detach();
        told.recv_soon().unwrap();
        drop(runtime);
        drop(free);
        assert_eq!(told.recv_soon(), Err(mpsc::RecvError));
    });
}

/// A task that is spawned on a runtime after its shutdown is dropped at once.
#[test]
fn spawning_afterwards_runs_nothing() {
    for_each_setup(|runtime| {
        runtime.shutdown(SOON).unwrap();
        let dropped = Arc::new(AtomicUsize::new(0));
        let guard = Dropped(dropped.clone());
        runtime.spawn(async move { drop(guard) }).detach();
        let guard = Dropped(dropped.clone());
        let task = runtime.spawn(async move {
            pending::<()>().await;
            drop(guard);
        });
        assert_eq!(dropped.load(SeqCst), 2);
        assert_eq!(future::block_on(task.fallible()), None);
    });
}

/// Awaiting a task that was cancelled by the end of its runtime, or spawned afterwards, panics; a
/// [`FallibleTask`](paceline::FallibleTask) returns `None` instead.
#[test]
fn awaiting_a_task_of_a_runtime_that_is_down_panics() {
    for_each_setup(|runtime| {
        let (before, quiet) = (runtime.spawn(pending::<()>()), runtime.spawn(pending::<()>()));
        runtime.shutdown(SOON).unwrap();
        for task in [before, runtime.spawn(async {})] {
            let awaited = catch_unwind(AssertUnwindSafe(|| runtime.block_on(task)));
            awaited.expect_err("the task was cancelled");
        }
        assert_eq!(runtime.block_on(quiet.cancel()), None);
    });
}

/// Wakers fire on other threads while executor and runtime are dropped: all futures are dropped, once.
/// (Without `State::cancel_to_the_last` the model beside it fails; this test would have to hit the right
/// moment.)
#[test]
fn wakers_may_outlive_the_executor() {
    fn grab_waker(tell: mpsc::Sender<Waker>, dropped: &Arc<AtomicUsize>) -> impl Future<Output = ()> + use<> {
        let guard = Dropped(dropped.clone());
        std::future::poll_fn(move |cx| {
            let _future = &guard;
            let _ = tell.send(cx.waker().clone());
            Poll::Pending
        })
    }
    for _ in 0..50 {
        let (tell, told) = mpsc::channel();
        let executor = Executor::new();
        let dropped = Arc::default();
        for _ in 0..4 {
            executor.spawn(grab_waker(tell.clone(), &dropped)).detach();
        }
        while executor.try_tick() {}
        let wakers: Vec<_> = told.try_iter().collect();
        assert_eq!(wakers.len(), 4);
        let storm = thread::spawn(move || {
            for _ in 0..50 {
                wakers.iter().for_each(Waker::wake_by_ref);
            }
        });
        drop(executor);
        assert_eq!(dropped.load(SeqCst), 4);
        storm.join().unwrap();
    }
    for_each_builder(move |setup| {
        let (tell, told) = mpsc::channel();
        let runtime = setup.build();
        let dropped = Arc::default();
        for _ in 0..4 {
            runtime.spawn(grab_waker(tell.clone(), &dropped)).detach();
        }
        let wakers: Vec<_> = (0..4).map(|_| told.recv_soon().unwrap()).collect();
        let going = Latch::new();
        let gone = going.clone();
        let storm = thread::spawn(move || {
            going.open();
            for _ in 0..2000 {
                wakers.iter().for_each(Waker::wake_by_ref);
            }
        });
        gone.wait();
        drop(runtime);
        storm.join().unwrap();
        eventually("all futures are dropped", || dropped.load(SeqCst) == 4);
    });
}
