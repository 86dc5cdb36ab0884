//! All workers are stuck, or their replacements are; and state that a stranger leaves behind.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Executor, Promotion, Runtime, Timer, Tuning, WakeOrder, block_on};

use crate::blocked_leader::{MOMENT, a_socket, a_timer, soon};
use crate::given_time::RecvSoon;
use crate::setups::{
    AsleepThread, Latch, OpenOnDrop, Ping, SOON, arm, eventually, is_child, pair, waker_that, without_looks,
};

/// Waits in a nested `block_on` for a task that does the same, and so on, down to this depth.
fn nest(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            return 0;
        }
        Timer::after(Duration::from_micros(10)).await;
        1 + block_on(paceline::spawn(nest(depth - 1)))
    })
}

/// A task waits in a nested `block_on` for another one of the same runtime, and so on.
#[test]
fn a_task_that_a_nested_block_on_waits_for_gets_another_worker() {
    for portable in [false, true] {
        let runtime =
            Runtime::builder().threads(1).tuning(Tuning::default().portable(portable)).build().unwrap();
        soon("another worker runs what the first one waits for", move || {
            assert_eq!(runtime.block_on(runtime.spawn(nest(5))), 5);
            eventually("the others leave", || runtime.metrics().workers == 1);
        });
    }
}

/// A waker blocks, in a pool without threads in `block_on`: the thread that leads there is stuck, and another
/// thread leads.
#[test]
fn lf5_a_waker_that_blocks_the_relief() {
    if !is_child("all_workers_blocked::lf5_a_waker_that_blocks_the_relief", ":") {
        return;
    }
    let (called, end) = (Latch::new(), Latch::new());
    let _end = OpenOnDrop(end.clone());
    let waker = waker_that({
        let called = called.clone();
        move || {
            called.open();
            end.wait();
        }
    });
    let mut timer = Timer::never();
    arm(&mut timer, MOMENT, &waker);
    called.wait();
    for _ in 0..3 {
        soon("another thread leads", || pollster::block_on(async { (a_timer().await, a_socket().await) }));
    }
}

/// A hook that blocks has a thread of its own; meanwhile the next report waits.
#[test]
fn lf5_a_hook_that_blocks_blocks_no_other_thread() {
    let (called, end) = (Latch::new(), Latch::new());
    let _end = OpenOnDrop(end.clone());
    let runtime = Runtime::builder()
        .threads(1)
        .on_stall({
            let (called, end) = (called.clone(), end.clone());
            move |_| {
                called.open();
                end.wait();
            }
        })
        .build()
        .unwrap();
    let mut ping = Ping::new(&runtime);
    let stuck = runtime.spawn({
        let end = end.clone();
        async move { end.wait() }
    });
    called.wait();
    ping.ping();
    end.open();
    runtime.block_on(stuck);
}

/// If every thread gets work in turn, no added thread is idle for long; they leave all the same.
#[test]
fn replacements_go_under_load() {
    let runtime = Runtime::builder()
        .threads(1)
        .tuning(Tuning::default().promotion(Promotion::Eager).wake_order(WakeOrder::FirstInFirstOut))
        .build()
        .unwrap();
    let mut pings: Vec<_> = (0..4).map(|_| Ping::new(&runtime)).collect();
    // The tasks meet, each on a thread of its own.
    let (met, all) = (Arc::new(AtomicUsize::new(0)), Latch::new());
    let meet = |_| {
        let (met, all) = (met.clone(), all.clone());
        runtime.spawn(async move {
            if met.fetch_add(1, SeqCst) + 1 == 3 {
                all.open();
            }
            all.wait();
        })
    };
    let blocked: Vec<_> = (0..3).map(meet).collect();
    blocked.into_iter().for_each(pollster::block_on);
    eventually("the replacements are gone", || {
        pings.iter_mut().for_each(|ping| _ = ping.ping());
        runtime.metrics().workers == 1
    });
}

// --- direct polling

/// A tick, or a run under another library's `block_on`, leaves nothing behind when it is over. Fails if
/// strangers turn direct polling off for good. (Without workers and without a deputy, no other thread leads,
/// so each round has the same polls.)
#[test]
fn direct_polling_comes_back() {
    let builder = Runtime::builder().current_thread().tuning(without_looks());
    let runtime = builder.build().unwrap();
    let executor: Arc<Executor<'static>> = Arc::default();
    let round = || {
        let before = runtime.metrics();
        runtime.block_on(executor.run(async {
            let (mut one, mut other) = pair();
            let echo = executor.spawn(async move {
                let mut byte = [0];
                for _ in 0..500 {
                    other.read_exact(&mut byte).await.unwrap();
                    other.write_all(&byte).await.unwrap();
                }
            });
            let talk = executor.spawn(async move {
                for _ in 0..500 {
                    one.write_all(b"x").await.unwrap();
                    one.read_exact(&mut [0]).await.unwrap();
                }
            });
            (talk.await, echo.await)
        }));
        let after = runtime.metrics();
        (after.polls_direct - before.polls_direct, after.polls_surplus - before.polls_surplus)
    };
    let (direct, surplus) = round();
    assert!(direct > surplus, "{direct} direct, {surplus} from surplus");
    let (sleeps, asleep) = AsleepThread::new();
    let ticker = {
        let executor = executor.clone();
        thread::spawn(move || {
            sleeps();
            pollster::block_on(executor.tick());
        })
    };
    asleep.wait();
    executor.spawn(async {}).detach();
    ticker.join().unwrap();
    let (sleeps, asleep) = AsleepThread::new();
    let (end, ended) = async_channel::bounded::<()>(1);
    let runs = {
        let executor = executor.clone();
        thread::spawn(move || {
            future::block_on(executor.run(async {
                sleeps();
                ended.recv().await.unwrap_err();
            }));
        })
    };
    asleep.wait();
    drop(end);
    runs.join().unwrap();
    assert_eq!(round(), (direct, surplus));
}

// --- the report of stuck threads by a shutdown

/// Thread by thread: its name, its id, and the spawn line of the task that keeps it.
#[test]
fn a_shutdown_names_each_stuck_thread_and_its_task() {
    // No worker is idle: an idle one that gets no core in time would be named, too.
    let runtime = Runtime::builder().threads(2).max_threads(2).thread_name("stays").build().unwrap();
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let (tell, told) = mpsc::channel();
    let blocks = |end: Latch| {
        let tell = tell.clone();
        move || {
            let current = thread::current();
            tell.send((current.id(), current.name().map(String::from))).unwrap();
            end.wait();
        }
    };
    let (one, other) = (blocks(end.clone()), blocks(end.clone()));
    let line = line!() + 1;
    runtime.spawn(async move { one() }).detach();
    runtime.spawn(async move { other() }).detach();
    let mut blocked: Vec<_> = (0..2).map(|_| told.recv_soon().unwrap()).collect();

    let error = runtime.shutdown(MOMENT).unwrap_err();
    assert_eq!(error.timeout(), MOMENT);
    let mut lines: Vec<_> = error.threads().iter().map(|stuck| stuck.spawned_at.unwrap().line()).collect();
    lines.sort();
    assert_eq!(lines, [line, line + 1]);
    let mut stuck: Vec<_> = error.threads().iter().map(|stuck| (stuck.id, stuck.name.clone())).collect();
    stuck.sort_by_key(|(_, name)| name.clone());
    blocked.sort_by_key(|(_, name)| name.clone());
    assert_eq!(stuck, blocked);
    let text = error.to_string();
    for stuck in error.threads() {
        assert!(text.contains(&stuck.to_string()), "{text}");
    }
    end.open();
    runtime.shutdown(SOON).expect("no task blocks any more");
}

/// A worker may be kept without a task: by its hook, or by the destructor of a cancelled future.
#[test]
fn a_shutdown_names_threads_that_no_task_keeps() {
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let starts = Latch::new();
    let hook = {
        let (starts, end) = (starts.clone(), end.clone());
        move || {
            starts.open();
            end.wait();
        }
    };
    let in_hook = Runtime::builder()
        .threads(1)
        .max_threads(1)
        .thread_name("hook")
        .on_thread_start(hook)
        .build()
        .unwrap();
    starts.wait();

    struct WaitOnDrop(Latch);
    impl Drop for WaitOnDrop {
        fn drop(&mut self) {
            self.0.wait();
        }
    }
    let in_drop = Runtime::builder().threads(1).max_threads(1).thread_name("drop").build().unwrap();
    let polled = Latch::new();
    let (task_polled, guard) = (polled.clone(), WaitOnDrop(end.clone()));
    let task = async move {
        task_polled.open();
        std::future::pending::<()>().await;
        drop(guard);
    };
    in_drop.spawn(task).detach();
    polled.wait();

    // The destructor runs on the worker, or on the thread that drops futures beside it.
    for (runtime, names) in [(&in_hook, ["hook-1"; 2]), (&in_drop, ["drop-1", "drop-end"])] {
        let error = runtime.shutdown(MOMENT).unwrap_err();
        let [stuck] = error.threads() else { panic!("{error}") };
        assert!(names.contains(&stuck.name.as_deref().unwrap()) && stuck.spawned_at.is_none(), "{error}");
    }
    end.open();
    [in_hook, in_drop].iter().for_each(|runtime| runtime.shutdown(SOON).expect("no thread blocks any more"));
}

/// A task that ticks another executor and then blocks is reported as itself, for every kind of executor.
#[test]
fn a_stall_after_a_tick_names_the_task_that_blocks() {
    fn check(try_tick: impl FnOnce() -> bool + Send + 'static) {
        let (tell, told) = mpsc::channel();
        let hook = move |stall: &paceline::Stall| _ = tell.send(stall.spawned_at.line());
        let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
        let end = Latch::new();
        let ends = OpenOnDrop(end.clone());
        let line = line!() + 1;
        let blocks = runtime.spawn(async move {
            assert!(try_tick());
            end.wait();
        });
        assert_eq!(told.recv_soon(), Ok(line));
        drop(ends);
        runtime.block_on(blocks);
    }
    let executor: Executor<'static> = Executor::new();
    executor.spawn(async {}).detach();
    check(move || executor.try_tick());
    // A static instead of a leaked executor, for the leak sanitizer.
    static EXECUTOR: paceline::StaticExecutor = paceline::StaticExecutor::new();
    EXECUTOR.spawn(async {}).detach();
    check(|| EXECUTOR.try_tick());
}
