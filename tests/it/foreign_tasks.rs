//! Tasks that the test builds with `async-task`, on a runtime and on an executor of paceline.

use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use async_task::{Builder, Runnable, Task};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Executor, Handle, Runtime, Timer, block_on};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, SOON, eventually, for_each_setup, is_child, without_looks};

/// Starts a foreign task on a runtime.
fn start<T: Send + 'static>(on: &Handle, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    let (runnable, task) = async_task::spawn(future, on.scheduler());
    runnable.schedule();
    task
}

/// Echoes bytes on one connection, `count` times, from a thread that is not the runtime's.
fn ping(mut peer: &UnixStream, count: usize) {
    use std::io::Read;
    for _ in 0..count {
        peer.write_all(b"x").unwrap();
        peer.read_exact(&mut [0]).unwrap();
    }
}

async fn echo(stream: UnixStream) {
    let mut stream = Async::new(stream).unwrap();
    let mut buf = [0];
    while stream.read_exact(&mut buf).await.is_ok() {
        stream.write_all(&buf).await.unwrap();
    }
}

#[test]
fn tasks_run_wait_and_return_in_every_set_up() {
    for_each_setup(|runtime| {
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                start(&runtime.handle(), async move {
                    Timer::after(Duration::from_millis(number % 3)).await;
                    future::yield_now().await;
                    number
                })
            })
            .collect();
        let sum = runtime.block_on(async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await;
            }
            sum
        });
        assert_eq!(sum, 49 * 25);
    });
}

/// All polls but the first are made by the thread that saw the event. There is one thread: a second one may
/// see the next event while the first still runs the task, which then wakes itself at the end of its poll.
#[test]
fn a_task_that_an_event_wakes_is_polled_directly() {
    let runtime = Runtime::builder().threads(1).max_threads(1).tuning(without_looks()).build().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let task = start(&runtime.handle(), echo(theirs));
    // A task that finds its next byte there already needs no wake; but a poll of 128 operations gives way.
    let mut pings = 0;
    let metrics = loop {
        ping(&ours, 100);
        pings += 100;
        let metrics = runtime.metrics();
        if metrics.polls_direct > 200 {
            break metrics;
        }
    };
    drop(ours);
    runtime.block_on(task);
    let most = 1 + 2 * pings / 128;
    assert!(metrics.polls_surplus <= most && metrics.polls_stolen == 0, "{metrics}");
}

/// Fails if a task that wakes itself goes into the slot: then it is polled again before the others.
#[test]
fn tasks_that_wake_themselves_take_turns() {
    let runtime = Runtime::builder().threads(1).tuning(without_looks()).build().unwrap();
    let handle = runtime.handle();
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = order.clone();
    let tasks = runtime.spawn(async move {
        let yields = |number| {
            let order = noted.clone();
            start(&handle, async move {
                for _ in 0..3 {
                    order.lock().unwrap().push(number);
                    future::yield_now().await;
                }
            })
        };
        [0, 1, 2].map(yields)
    });
    runtime.block_on(async {
        for task in tasks.await {
            task.await;
        }
    });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

/// A future that waits, and whose drop takes a lock, as a listener of a channel does. The thread that wakes
/// the task must not drop it, because that thread holds the lock.
struct Locks {
    lock: Arc<Mutex<Vec<Waker>>>,
    waking: thread::ThreadId,
    dropped_elsewhere: mpsc::Sender<bool>,
}

impl Future for Locks {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.lock.lock().unwrap().push(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        let is_elsewhere = thread::current().id() != self.waking;
        let _guard = is_elsewhere.then(|| self.lock.lock().unwrap());
        self.dropped_elsewhere.send(is_elsewhere).unwrap();
    }
}

/// Fails if the future is dropped by the thread that wakes its task, or by none.
fn a_late_wake_cancels(handle: &Handle, end: impl FnOnce()) {
    let (dropped_elsewhere, dropped) = mpsc::channel();
    let locks = Locks { lock: Arc::default(), waking: thread::current().id(), dropped_elsewhere };
    let lock = locks.lock.clone();
    let task = start(handle, locks);
    // In `block_on`, because a current-thread runtime polls its tasks there.
    handle.block_on(async {
        while lock.lock().unwrap().is_empty() {
            future::yield_now().await;
        }
    });
    end();
    lock.lock().unwrap().drain(..).for_each(Waker::wake);
    assert_eq!(dropped.recv_soon(), Ok(true));
    assert_eq!(pollster::block_on(task.fallible()), None);
}

#[test]
fn a_wake_after_the_end_of_the_runtime_cancels_the_task() {
    let ends: [fn(Runtime) -> Option<Runtime>; 3] = [
        |runtime| {
            drop(runtime);
            None
        },
        |runtime| {
            runtime.shutdown(SOON).unwrap();
            Some(runtime)
        },
        |runtime| {
            block_on(runtime.drain(SOON));
            Some(runtime)
        },
    ];
    for builder in [|| Runtime::builder().threads(1), || Runtime::builder().current_thread()] {
        for end in ends {
            let runtime = builder().build().unwrap();
            let handle = runtime.handle();
            let mut ended = None;
            a_late_wake_cancels(&handle, || ended = end(runtime));
            drop(ended);
        }
    }
}

/// Fails if the future is dropped by a thread that the end of the default instance has stopped.
#[test]
fn a_wake_after_the_drain_of_the_default_instance_cancels_the_task() {
    if !is_child("foreign_tasks::a_wake_after_the_drain_of_the_default_instance_cancels_the_task", ":") {
        return;
    }
    let handle = Handle::current();
    a_late_wake_cancels(&handle, || _ = block_on(handle.drain(SOON)));
}

/// Fails if a thread is started for each late wake: all of them wait for the lock that the waking thread has.
#[test]
fn a_hundred_late_wakes_take_few_threads() {
    if !is_child("foreign_tasks::a_hundred_late_wakes_take_few_threads", ":") {
        return;
    }
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let lock = Arc::new(Mutex::new(Vec::<Waker>::new()));
    let (dropped_elsewhere, dropped) = mpsc::channel();
    let waits = |_| {
        let (lock, dropped_elsewhere) = (lock.clone(), dropped_elsewhere.clone());
        start(&runtime.handle(), Locks { lock, waking: thread::current().id(), dropped_elsewhere })
    };
    let tasks: Vec<_> = (0..100).map(waits).collect();
    eventually("all wait", || lock.lock().unwrap().len() == 100);
    drop(runtime);
    let mut wakers = lock.lock().unwrap();
    let before = threads();
    wakers.drain(..).for_each(Waker::wake);
    let most = threads();
    drop(wakers);
    tasks.into_iter().for_each(|task| assert_eq!(pollster::block_on(task.fallible()), None));
    assert!((0..100).all(|_| dropped.recv_soon() == Ok(true)));
    assert!(most <= before + 4, "{before} threads, then {most}");
}

/// A drain does not wait for such tasks, neither for one that waits nor for one that blocks. It names the
/// thread that does not return.
#[test]
fn tasks_are_neither_counted_nor_listed() {
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let waits = start(&runtime.handle(), future::pending::<()>());
    let (began, gate) = (Latch::new(), Latch::new());
    let _open = OpenOnDrop(gate.clone());
    let (told, gated) = (began.clone(), gate.clone());
    let blocks = start(&runtime.handle(), async move {
        told.open();
        gated.wait();
    });
    began.wait();
    assert_eq!((runtime.metrics().tasks, runtime.tasks().len()), (Some(0), 0));
    let report = block_on(runtime.drain(SOON));
    assert_eq!((report.finished, report.cancelled, report.undropped), (0, 0, 0), "{report}");
    assert_eq!(report.stuck.iter().map(|thread| thread.spawned_at).collect::<Vec<_>>(), [None]);
    gate.open();
    block_on(blocks);
    drop(waits);
}

/// Fails if the drain counts the poll in which it was called as a task that waits for the report: then it
/// leaves one task of the runtime unfinished.
#[test]
fn a_drain_inside_of_a_task_cuts_off_no_other_task() {
    let runtime = Arc::new(Runtime::builder().threads(2).build().unwrap());
    let (finish, finished) = async_channel::bounded::<()>(1);
    let own = runtime.spawn(async move { finished.recv().await.is_ok() });
    let (tell, told) = mpsc::channel();
    let inside = runtime.clone();
    let gone = Runtime::builder().threads(1).build().unwrap().handle();
    let foreign = start(&runtime.handle(), async move {
        // A task that is dropped in the poll is not the one that waits.
        gone.spawn(async {}).detach();
        let drain = inside.drain(SOON);
        tell.send(()).unwrap();
        drain.await
    });
    told.recv().unwrap();
    let report = runtime.drain(SOON);
    let sender = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        finish.send_blocking(()).unwrap();
    });
    assert_eq!(block_on(report).cancelled, 0);
    sender.join().unwrap();
    assert!(block_on(own));
    // It has the report, or was cancelled with the runtime.
    drop(foreign);
}

/// Fails if the panic of a poll reaches the caller of `run` or `try_tick`.
#[test]
fn a_panic_ends_with_its_poll() {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    (0..3).for_each(|_| start(&runtime.handle(), async { panic!("on purpose") }).detach());
    let builder = Builder::new().propagate_panic(true);
    let (runnable, task) = builder.spawn(|()| async { panic!("again") }, runtime.handle().scheduler());
    runnable.schedule();
    let caught: Result<(), _> = catch_unwind(AssertUnwindSafe(|| runtime.block_on(task)));
    assert_eq!(crate::setups::text_of(&*caught.unwrap_err()), "again");
    assert_eq!(runtime.block_on(start(&runtime.handle(), async { 1 })), 1);
    // A thread that prints its panic takes so long that another thread may be added for it.
    eventually("no thread is lost, and none is left over", || runtime.metrics().workers == 1);
    assert_eq!(runtime.metrics().tasks_panicked, 0);

    let executor = Executor::new();
    let schedule_one = || {
        let (runnable, task) = async_task::spawn(async { panic!("once more") }, |_| unreachable!());
        task.detach();
        executor.schedule(runnable);
    };
    schedule_one();
    assert!(executor.try_tick());
    schedule_one();
    assert_eq!(block_on(executor.run(executor.spawn(async { 2 }))), 2);
}

/// Other connections are served. The stall is counted, and not reported: its line is not known.
#[test]
fn a_task_that_blocks_is_replaced() {
    let hook = |stall: &paceline::Stall| panic!("{stall}");
    let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let gated = gate.clone();
    let blocks = start(&runtime.handle(), async move { gated.wait() });
    let (ours, theirs) = UnixStream::pair().unwrap();
    let serves = start(&runtime.handle(), echo(theirs));
    ping(&ours, 100);
    eventually("it is counted", || runtime.metrics().stalls == 1);
    gate.open();
    drop(ours);
    runtime.block_on(async { (blocks.await, serves.await) });
}

#[test]
fn an_executor_runs_them_and_its_drop_cancels_those_that_are_scheduled() {
    static EXECUTOR: Executor<'static> = Executor::new();
    let waits = async {
        Timer::after(Duration::from_millis(1)).await;
        5
    };
    let (runnable, task) = async_task::spawn(waits, |runnable: Runnable| EXECUTOR.schedule(runnable));
    runnable.schedule();
    assert_eq!(block_on(EXECUTOR.run(task)), 5);
    let executor = Executor::new();
    let (runnable, task) = async_task::spawn(async { 6 }, |_| unreachable!("it never waits"));
    executor.schedule(runnable);
    assert!(executor.is_empty(), "it does not count");
    drop(executor);
    assert_eq!(block_on(task.fallible()), None);
}

/// A current-thread runtime polls them in the order of their wakes, between its own tasks.
#[test]
fn a_current_thread_runtime_keeps_the_order() {
    let runtime = Runtime::builder().current_thread().build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |number| {
        let order = order.clone();
        async move { order.lock().unwrap().push(number) }
    };
    let first = runtime.spawn(noting(1));
    let second = start(&runtime.handle(), noting(2));
    let third = runtime.spawn(noting(3));
    runtime.block_on(async { (first.await, second.await, third.await) });
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
}
