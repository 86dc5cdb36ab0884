//! A task or a root future blocks its thread in a `block_on` of paceline or of another library. The tasks
//! that it left on that thread are run by the next thread that runs the executor: inside of that `block_on`,
//! or elsewhere.
//!
//! Some of the tests hang without any one of these: `Host::hand_over` in `Frame::begin`, `Host::polls_with`,
//! `Host::open`, and the deputy's look at threads that are stuck outside of a task.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::{Executor, Task, Timer};

use crate::given_time::RecvSoon;
use crate::setups::AsleepThread;

/// The `block_on` that a thread is in.
#[derive(Clone, Copy, Debug)]
enum By {
    Us,
    Others,
}

impl By {
    const ALL: [By; 2] = [By::Us, By::Others];

    fn block_on<T>(self, future: impl Future<Output = T>) -> T {
        match self {
            By::Us => paceline::block_on(future),
            By::Others => future::block_on(future),
        }
    }
}

/// Runs `test` on a thread of its own, for each pair of `block_on`s. A test that hangs is abandoned.
fn for_each_pair(test: impl Fn(By, By) + Copy + Send + 'static) {
    let mut hung = Vec::new();
    for outer in By::ALL {
        for inner in By::ALL {
            let (done, is_done) = mpsc::channel();
            thread::spawn(move || {
                test(outer, inner);
                let _ = done.send(());
            });
            if is_done.recv_soon().is_err() {
                // The metrics of the default instance, which has to notice that no thread leads and which one
                // is stuck.
                hung.push(format!("({outer:?}, {inner:?}), then:\n{}", paceline::metrics()));
            }
        }
    }
    assert!(hung.is_empty(), "hung (outer, inner): {}", hung.join("\n"));
}

/// In its first poll a `block_on` of paceline has not entered a pool yet.
async fn come_back() {
    Timer::after(Duration::from_millis(1)).await;
}

/// A second thread that runs the executor.
fn helper(executor: &Arc<Executor<'static>>, by: By) -> impl Drop + use<> {
    struct Stop(Option<async_channel::Sender<()>>, Option<thread::JoinHandle<()>>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0 = None;
            let _ = self.1.take().map(|helper| helper.join());
        }
    }
    let (stop, stopped) = async_channel::bounded::<()>(1);
    let executor = executor.clone();
    let (sleeps, asleep) = AsleepThread::new();
    let helper = thread::spawn(move || {
        let _ = by.block_on(executor.run(async {
            sleeps();
            stopped.recv().await
        }));
    });
    asleep.wait();
    Stop(Some(stop), Some(helper))
}

/// Runs the executor inside of a future until two tasks, one after the other, are done; returns their number.
async fn run_inside(executor: &Executor<'static>, inner: By) -> i32 {
    let mut sum = 0;
    for _ in 0..2 {
        let other = executor.spawn(async { 1 });
        sum += inner.block_on(executor.run(other));
        come_back().await;
    }
    sum
}

/// The pattern of bevy's scopes: a task spawns another one, and runs the executor until that one is done.
#[test]
fn a_task_runs_the_executor_until_another_is_done() {
    for_each_pair(|outer, inner| {
        let executor: Arc<Executor<'static>> = Arc::default();
        let task = executor.spawn({
            let executor = executor.clone();
            async move { run_inside(&executor, inner).await }
        });
        assert_eq!(outer.block_on(executor.run(task)), 2);
    });
}

/// The same from the future that `run` drives.
#[test]
fn a_root_future_runs_the_executor_until_a_task_is_done() {
    for_each_pair(|outer, inner| {
        let executor: Arc<Executor<'static>> = Arc::default();
        let root = run_inside(&executor, inner);
        assert_eq!(outer.block_on(executor.run(root)), 2);
    });
}

/// One executor drives another one: a task of the inner executor blocks, and waits for a task of the outer
/// one.
#[test]
fn a_task_of_one_executor_runs_the_other_one() {
    for_each_pair(|outer, inner| {
        let (first, second): (Arc<Executor<'static>>, Arc<Executor<'static>>) = Default::default();
        let task = second.spawn({
            let first = first.clone();
            async move { run_inside(&first, inner).await }
        });
        assert_eq!(outer.block_on(first.run(second.run(task))), 2);
    });
}

/// The same with an executor that is ticked.
#[test]
fn a_ticked_task_runs_the_executor() {
    for_each_pair(|outer, inner| {
        let (first, second): (Arc<Executor<'static>>, Arc<Executor<'static>>) = Default::default();
        let task = second.spawn({
            let first = first.clone();
            async move { run_inside(&first, inner).await }
        });
        let ticks = async {
            loop {
                second.tick().await;
            }
        };
        assert_eq!(outer.block_on(first.run(future::or(task, ticks))), 2);
    });
}

/// A nested `run` that sleeps is notified of tasks from elsewhere.
#[test]
fn a_nested_run_that_sleeps_is_told_of_tasks() {
    for_each_pair(|outer, inner| {
        let executor: Arc<Executor<'static>> = Arc::default();
        let task = executor.spawn({
            let executor = executor.clone();
            async move {
                come_back().await;
                let (tell, told) = async_channel::bounded(1);
                let (sleeps, asleep) = AsleepThread::new();
                let feeder = thread::spawn({
                    let executor = executor.clone();
                    move || {
                        asleep.wait();
                        executor.spawn(async move { tell.send(1).await.unwrap() }).detach();
                    }
                });
                let mut told = pin!(told.recv());
                let told = poll_fn(|cx| {
                    let polled = told.as_mut().poll(cx);
                    sleeps();
                    polled
                });
                let told = inner.block_on(executor.run(told)).unwrap();
                feeder.join().unwrap();
                told
            }
        });
        assert_eq!(outer.block_on(executor.run(task)), 1);
    });
}

/// Beside a nested `run`, another future in the same `block_on` spawns a task.
#[test]
fn a_task_that_is_made_beside_a_nested_run() {
    for_each_pair(|outer, inner| {
        let executor: Arc<Executor<'static>> = Arc::default();
        let task = executor.spawn({
            let executor = executor.clone();
            async move {
                come_back().await;
                let nested = executor.run(future::pending());
                let beside = async {
                    // At first the nested run finds nothing to do.
                    future::yield_now().await;
                    executor.spawn(async { 1 }).await
                };
                inner.block_on(future::or(beside, nested))
            }
        });
        assert_eq!(outer.block_on(executor.run(task)), 1);
    });
}

/// Blocks until a task has run `task`.
fn wait_for(executor: &Executor<'static>, task: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let spawned: Task<()> = executor.spawn(async move {
        task();
        tell.send(()).unwrap();
    });
    told.recv().unwrap();
    drop(spawned);
}

/// A task blocks its thread until another task is done, while another thread is idle.
#[test]
fn a_task_that_a_blocked_task_waits_for_is_done_elsewhere() {
    for_each_pair(|outer, by| {
        let executor: Arc<Executor<'static>> = Arc::default();
        let helper = helper(&executor, by);
        let done = Arc::new(AtomicBool::new(false));
        let task = executor.spawn({
            let (executor, done) = (executor.clone(), done.clone());
            async move {
                wait_for(&executor, || {});
                come_back().await;
                wait_for(&executor, move || done.store(true, SeqCst));
            }
        });
        outer.block_on(executor.run(task));
        drop(helper);
        assert!(done.load(SeqCst));
    });
}

/// The same from the future that `run` drives.
#[test]
fn a_task_that_a_blocked_root_future_waits_for_is_done_elsewhere() {
    for_each_pair(|outer, by| {
        let executor: Arc<Executor<'static>> = Arc::default();
        let helper = helper(&executor, by);
        outer.block_on(executor.run(async {
            wait_for(&executor, || {});
            come_back().await;
            wait_for(&executor, || {});
        }));
        drop(helper);
    });
}

/// The same, in a task of another executor, which a root future ticks.
#[test]
fn a_task_that_a_blocked_ticked_task_waits_for_is_done_elsewhere() {
    for_each_pair(|outer, by| {
        let (first, second): (Arc<Executor<'static>>, Arc<Executor<'static>>) = Default::default();
        let helper = helper(&first, by);
        let task = second.spawn({
            let first = first.clone();
            async move {
                wait_for(&first, || {});
                come_back().await;
                wait_for(&first, || {});
            }
        });
        outer.block_on(first.run(async {
            second.tick().await;
            second.tick().await;
            task.await;
        }));
        drop(helper);
    });
}
