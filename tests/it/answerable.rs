//! Promises that are broken on purpose: a thread that was to come back, to look for tasks, to lead, blocks in something that
//! the runtime knows nothing of. Somebody notices, and what can go on does (LF5).

use std::future::{Future, pending};
use std::io::Write;
use std::mem;
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt, future};
use paceline::{Async, Executor, LocalExecutor, Order, Promotion, Runtime, Timer, block_on};

use crate::setups::{
    Latch, OpenOnDrop, Ping, SOON, eventually, for_each_setup, for_setups, is_child, waker_that,
};

/// Somebody else's `block_on`, three of them.
const FOREIGN: [fn(Pin<Box<dyn Future<Output = ()> + Send>>); 3] =
    [future::block_on, futures_executor::block_on, pollster::block_on];

/// A socket that has something to read in a moment, from a thread of its own.
fn socket_in(moment: Duration) -> UnixStream {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        thread::sleep(moment);
        theirs.write_all(b"x").unwrap();
        // Not closed, which would be one more event.
        mem::forget(theirs);
    });
    ours
}

const MOMENT: Duration = Duration::from_millis(20);

async fn a_socket() {
    Async::new(socket_in(MOMENT)).unwrap().read_exact(&mut [0]).await.unwrap();
}

async fn a_timer() {
    Timer::after(MOMENT).await;
}

/// Runs `body` on a thread of its own and wants it back soon.
#[track_caller]
fn soon<T: Send + 'static>(what: &str, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || tell.send(body()));
    match told.recv_timeout(SOON) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            panic!("{what}: {:?}", thread.join().unwrap_err().downcast_ref::<String>())
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: not back within {SOON:?}"),
    }
}

// --- a runner that was notified, and whose thread does something else first

/// A task comes from outside at the moment when another one's timer fires, which then blocks until the first has run. Whoever
/// was told of it is the thread that blocks, sometimes. Fails without the audit of executors (`State::audit`).
#[test]
fn lf5_a_task_that_comes_when_its_runner_begins_to_block() {
    for_setups(
        |setup| setup.threads == 2,
        |_, runtime| {
            for _ in 0..40 {
                let at = Instant::now() + Duration::from_millis(2);
                let (tell, told) = mpsc::channel();
                let blocks = runtime.spawn(async move {
                    Timer::at(at).await;
                    told.recv_timeout(SOON).is_ok()
                });
                while Instant::now() < at + Duration::from_micros(20) {}
                runtime.spawn(async move { _ = tell.send(()) }).detach();
                assert!(pollster::block_on(blocks), "a task was not run beside an idle worker");
            }
        },
    );
}

/// Two threads run an executor under somebody else's `block_on`; one is told of a task and blocks in a future beside.
/// Fails without `oversight`.
#[test]
fn lf5_a_stranger_that_is_told_of_a_task_and_blocks() {
    for foreign in FOREIGN {
        soon("the other one runs it", move || {
            for _ in 0..20 {
                a_stranger_is_told(foreign);
            }
        });
    }
}

fn a_stranger_is_told(foreign: fn(Pin<Box<dyn Future<Output = ()> + Send>>)) {
    let executor: Arc<Executor<'static>> = Arc::default();
    let (ended, release) = (async_channel::bounded::<()>(1), Latch::new());
    let _release = OpenOnDrop(release.clone());
    let bell: Arc<Mutex<Option<Waker>>> = Arc::default();
    // Last in the list of those who sleep: it is told first.
    let run = |blocks: bool| {
        let (executor, end, release, bell) =
            (executor.clone(), ended.1.clone(), release.clone(), bell.clone());
        thread::spawn(move || {
            let beside = future::poll_fn(move |cx| {
                let rung = blocks && bell.lock().unwrap().replace(cx.waker().clone()).is_some();
                if rung {
                    // Woken, for the executor's sake perhaps, and does something else.
                    release.wait();
                }
                std::task::Poll::<()>::Pending
            });
            foreign(Box::pin(async move {
                let tasks = executor.run(async { _ = end.recv().await });
                future::or(beside, tasks).await;
            }));
        })
    };
    let first = run(false);
    thread::sleep(Duration::from_millis(2));
    let second = run(true);
    eventually("it sleeps", || bell.lock().unwrap().is_some());
    thread::sleep(Duration::from_millis(2));
    let (tell, told) = mpsc::channel();
    executor.spawn(async move { tell.send(()).unwrap() }).detach();
    told.recv_timeout(SOON).expect("an idle thread runs it");
    release.open();
    drop(ended);
    first.join().unwrap();
    second.join().unwrap();
}

/// An executor is run by threads of two runtimes, neither of which has anything else to do; a task waits in one's slot while
/// that one blocks. Fails if a runner that gets company does not call its deputy (`Runner::has_company`).
#[test]
fn lf5_an_executor_run_in_two_runtimes() {
    for portable in [false, true] {
        soon("the other runtime's thread runs it", move || {
            let executor: Arc<Executor<'static>> = Arc::default();
            let other = Runtime::builder().threads(1).portable(portable).build().unwrap();
            let (end, ended) = async_channel::bounded::<()>(1);
            let helper = {
                let executor = executor.clone();
                thread::spawn(move || other.block_on(executor.run(async { _ = ended.recv().await })))
            };
            block_on(executor.run(async {
                for _ in 0..20 {
                    let (tell, told) = mpsc::channel();
                    executor.spawn(async move { tell.send(()).unwrap() }).detach();
                    told.recv_timeout(SOON).expect("somebody runs it");
                    future::yield_now().await;
                }
            }));
            drop(end);
            helper.join().unwrap();
        });
    }
}

// --- a thread that was to come back and lead, in somebody else's `block_on`

/// The only thread of the pool waits for a timer, a socket, in somebody else's `block_on`. In processes of their own, where no
/// other thread is in the default instance. Fails if the first source or timer does not bring the deputy (`Hooks::first`), if
/// nobody is found to lead (`relief`), or if the deputy sleeps beside a pool that nobody leads (`Audit::is_quiet`).
fn foreign_inside(name: &str, inside: fn(fn(Pin<Box<dyn Future<Output = ()> + Send>>))) {
    if is_child(name, ":") {
        let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        let before = threads();
        for foreign in FOREIGN {
            soon(name, move || (0..3).for_each(|_| inside(foreign)));
        }
        eventually("nobody is left", || threads() == before);
    }
}

#[test]
fn lf5_foreign_block_on_in_a_root_future() {
    foreign_inside("answerable::lf5_foreign_block_on_in_a_root_future", |foreign| {
        block_on(async { foreign(Box::pin(a_timer())) });
        block_on(async { foreign(Box::pin(a_socket())) });
    });
}

#[test]
fn lf5_foreign_block_on_in_a_root_future_that_has_waited() {
    foreign_inside("answerable::lf5_foreign_block_on_in_a_root_future_that_has_waited", |foreign| {
        block_on(async {
            for _ in 0..3 {
                Timer::after(Duration::from_micros(100)).await;
                foreign(Box::pin(a_timer()));
                foreign(Box::pin(a_socket()));
            }
        });
    });
}

#[test]
fn lf5_foreign_block_on_in_a_task() {
    foreign_inside("answerable::lf5_foreign_block_on_in_a_task", |foreign| {
        let executor = Executor::new();
        let task = executor.spawn(async move {
            foreign(Box::pin(a_timer()));
            foreign(Box::pin(a_socket()));
        });
        block_on(executor.run(task));
        let local = LocalExecutor::new();
        let task = local.spawn(async move { foreign(Box::pin(a_timer())) });
        block_on(local.run(task));
    });
}

/// The same on workers, fewer than would have to block, and none may be added.
#[test]
fn lf5_foreign_block_on_on_all_workers() {
    for_each_setup(|runtime| {
        let tasks: Vec<_> = (0..4)
            .map(|number| runtime.spawn(async move { FOREIGN[number % 3](Box::pin(a_timer())) }))
            .collect();
        tasks.into_iter().for_each(pollster::block_on);
    });
    let runtime = Runtime::builder().threads(1).max_threads(1).build().unwrap();
    soon("the only worker comes back", move || {
        for _ in 0..3 {
            pollster::block_on(runtime.spawn(async { pollster::block_on(a_socket()) }));
        }
    });
}

/// A source of one pool is waited for in another one's `block_on`, nested in the first one's; by a task of the other's, too.
#[test]
fn lf5_a_source_of_the_pool_below() {
    for_each_setup(|runtime| {
        let runtime = runtime.clone();
        soon("the pool below is led", move || {
            block_on(async {
                Timer::after(Duration::from_micros(100)).await;
                let (mut here, mut there) =
                    (Async::new(socket_in(MOMENT)).unwrap(), Async::new(socket_in(MOMENT)).unwrap());
                let mut timer = Timer::interval(MOMENT);
                assert!(future::poll_once(timer.next()).await.is_none());
                runtime.block_on(async { here.read_exact(&mut [0]).await.unwrap() });
                runtime.block_on(runtime.spawn(async move { there.read_exact(&mut [0]).await.unwrap() }));
                runtime.block_on(timer.next());
            });
        });
    });
}

// --- the end of a runtime

/// Somebody waits for a source of a runtime under somebody else's `block_on`, from before or after it was shut down, once or
/// twice, at once or later.
#[test]
fn lf5_a_wait_beside_a_shutdown() {
    for_each_setup(|runtime| {
        for pause in [0, 0, 0, 1, 5] {
            let (near, mut far) = UnixStream::pair().unwrap();
            let near = Arc::new(runtime.block_on(async { Async::new(near).unwrap() }));
            let wait = || {
                let near = near.clone();
                thread::spawn(move || pollster::block_on(near.readable()))
            };
            let before = wait();
            runtime.shutdown(SOON).unwrap();
            thread::sleep(Duration::from_millis(pause));
            let after = wait();
            thread::sleep(Duration::from_millis(pause));
            far.write_all(b"x").unwrap();
            for wait in [before, after] {
                eventually("the wait is over", || wait.is_finished());
                wait.join().unwrap().unwrap();
            }
        }
    });
}

/// A timer that was polled in a runtime that is shut down, and kept.
#[test]
fn lf5_a_timer_of_a_runtime_that_was_shut_down() {
    for_each_setup(|runtime| {
        let mut timer = Timer::after(MOMENT);
        assert!(runtime.block_on(future::poll_once(&mut timer)).is_none());
        runtime.shutdown(SOON).unwrap();
        soon("it fires", move || block_on(timer));
    });
}

/// Spawning on a runtime that is being shut down, with a lock held that another task's future takes when it is dropped.
#[test]
fn d1_spawning_beside_a_shutdown_drops_nobody_elses_future() {
    struct Locks(Arc<Mutex<u32>>);
    impl Drop for Locks {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    for_each_setup(|runtime| {
        let count = Arc::new(Mutex::new(0));
        let locks = Locks(count.clone());
        runtime
            .spawn(async move {
                let _locks = locks;
                pending::<()>().await;
            })
            .detach();
        let (stopped, has_stopped) = (Latch::new(), Latch::new());
        let (begun, done) = (Latch::new(), Latch::new());
        let spawner = {
            let (count, stopped, begun, done) = (count.clone(), stopped.clone(), begun.clone(), done.clone());
            async move {
                begun.open();
                stopped.wait();
                let locked = count.lock().unwrap();
                drop(paceline::spawn(async {}));
                drop(locked);
                done.open();
            }
        };
        runtime.spawn(spawner).detach();
        begun.wait();
        assert!(runtime.shutdown(Duration::from_millis(5)).is_err(), "the spawner is stuck");
        has_stopped.open();
        stopped.open();
        done.wait();
        eventually("the other future is dropped", || count.try_lock().is_ok_and(|count| *count == 1));
    });
}

/// Who was told what is stuck has waited; dropping the runtime then waits for nobody.
#[test]
fn p4_a_drop_after_a_shutdown_that_failed_does_not_wait() {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let (begun, end) = (Latch::new(), Latch::new());
    let _end = OpenOnDrop(end.clone());
    runtime
        .spawn({
            let begun = begun.clone();
            async move {
                begun.open();
                end.wait();
            }
        })
        .detach();
    begun.wait();
    runtime.shutdown(Duration::ZERO).unwrap_err();
    let start = Instant::now();
    drop(runtime);
    assert!(start.elapsed() < Duration::from_millis(90), "it waited again");
}

// --- all workers are stuck

/// A guest's own events while every host is stuck: it leads, and does not wait for the deputy each time. Fails if a rescue does
/// not open leadership to guests (`OPEN`).
#[test]
fn lf5_a_guest_leads_while_all_hosts_are_stuck() {
    for_setups(
        |setup| setup.threads <= 2,
        |setup, runtime| {
            let end = Latch::new();
            let _end = OpenOnDrop(end.clone());
            let stuck = Arc::new(AtomicUsize::new(0));
            for _ in 0..setup.threads {
                let (end, stuck) = (end.clone(), stuck.clone());
                runtime
                    .spawn(async move {
                        stuck.fetch_add(1, SeqCst);
                        end.wait();
                    })
                    .detach();
            }
            eventually("all are stuck", || stuck.load(SeqCst) == setup.threads);
            let rescues = runtime.metrics().deputy_rescues;
            const ROUNDS: u64 = 2_000;
            runtime.block_on(async {
                let (mut here, mut there) = Async::<UnixStream>::pair().unwrap();
                for _ in 0..ROUNDS {
                    let send = async { here.write_all(b"x").await.unwrap() };
                    future::zip(async { there.read_exact(&mut [0]).await.unwrap() }, send).await;
                }
            });
            let rescues = runtime.metrics().deputy_rescues - rescues;
            assert!(rescues < ROUNDS / 10, "the deputy was needed {rescues} times in {ROUNDS} rounds");
            end.open();
            // The hosts have their place back.
            Ping::new(runtime).ping();
        },
    );
}

/// A task waits in a nested `block_on` for another one of the same runtime, which may have no second thread.
#[test]
fn b5_a_nested_block_on_where_no_thread_may_be_added() {
    fn nest(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                return 0;
            }
            Timer::after(Duration::from_micros(10)).await;
            1 + block_on(paceline::spawn(nest(depth - 1)))
        })
    }
    for portable in [false, true] {
        let runtime = Runtime::builder().threads(1).max_threads(1).portable(portable).build().unwrap();
        soon("the waiter runs what it waits for", move || {
            assert_eq!(runtime.block_on(runtime.spawn(nest(5))), 5);
            assert_eq!(runtime.metrics().workers, 1);
        });
    }
}

/// There is an end to that, and it is said.
#[test]
fn b5_nesting_without_end_is_a_panic() {
    fn nest() -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async { block_on(paceline::spawn(nest())) })
    }
    let runtime = Runtime::builder()
        .threads(1)
        .max_threads(1)
        .stack_size(16 << 20)
        .max_blind(Duration::from_micros(100));
    let runtime = runtime.build().unwrap();
    soon("it panics", move || {
        let nested = runtime.spawn(nest());
        let panic =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(nested))).unwrap_err();
        assert!(crate::setups::text_of(&*panic).contains("nested"), "{}", crate::setups::text_of(&*panic));
    });
}

/// A waker that blocks, in a pool that nobody is in: whoever leads there is stuck, and somebody else leads.
#[test]
fn lf5_a_waker_that_blocks_the_relief() {
    if !is_child("answerable::lf5_a_waker_that_blocks_the_relief", ":") {
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
    let mut timer = pin!(Timer::after(MOMENT));
    assert!(timer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    called.wait();
    for _ in 0..3 {
        soon("somebody else leads", || pollster::block_on(async { (a_timer().await, a_socket().await) }));
    }
}

/// A hook that blocks has its own thread to block; and while it does, the next report waits.
#[test]
fn lf5_a_hook_that_blocks_blocks_nobody() {
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
    assert!(ping.ping() < SOON);
    end.open();
    runtime.block_on(stuck);
}

/// A worker that is starting, and whose hook blocks, is no hand to count on.
#[test]
fn lf5_a_worker_that_does_not_start() {
    let starts = Arc::new(AtomicUsize::new(0));
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let hook = {
        let (starts, end) = (starts.clone(), end.clone());
        move || {
            // The first replacement.
            if starts.fetch_add(1, SeqCst) == 1 {
                end.wait();
            }
        }
    };
    let runtime = Runtime::builder().threads(1).max_threads(4).on_thread_start(hook).build().unwrap();
    let stuck = runtime.spawn({
        let end = end.clone();
        async move { end.wait() }
    });
    assert!(pollster::block_on(runtime.spawn(async { true })), "a second replacement comes");
    end.open();
    pollster::block_on(stuck);
}

/// Where every thread gets work in turn, none of those that were added is idle for long; they go all the same.
#[test]
fn replacements_go_under_load() {
    let runtime = Runtime::builder()
        .threads(1)
        .promotion(Promotion::Eager)
        .order(Order::FirstInFirstOut)
        .build()
        .unwrap();
    let mut pings: Vec<_> = (0..4).map(|_| Ping::new(&runtime)).collect();
    let blocked: Vec<_> =
        (0..3).map(|_| runtime.spawn(async { thread::sleep(Duration::from_millis(50)) })).collect();
    blocked.into_iter().for_each(pollster::block_on);
    assert!(runtime.metrics().workers > 1, "nobody stood in");
    eventually("the replacements are gone", || {
        pings.iter_mut().for_each(|ping| _ = ping.ping());
        runtime.metrics().workers == 1
    });
}

// --- direct polling

/// A tick, or a run under somebody else's `block_on`, that is over leaves nothing behind. Fails if strangers turn direct polling
/// off for good.
#[test]
fn direct_polling_comes_back() {
    let executor: Arc<Executor<'static>> = Arc::default();
    let round = || {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        // The worker has nothing to do with it and would take half of the events.
        let end = Latch::new();
        let _end = OpenOnDrop(end.clone());
        runtime.spawn(async move { end.wait() }).detach();
        runtime.block_on(executor.run(async {
            let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
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
        runtime.metrics().direct_share()
    };
    assert!(round() > 0.9);
    let ticker = {
        let executor = executor.clone();
        thread::spawn(move || pollster::block_on(executor.tick()))
    };
    thread::sleep(Duration::from_millis(5));
    executor.spawn(async {}).detach();
    ticker.join().unwrap();
    future::block_on(executor.run(async { Timer::after(Duration::from_millis(1)).await }));
    assert!(round() > 0.9, "direct polls did not come back");
}

/// A task that ticks another executor and then blocks is reported as itself.
#[test]
fn a_stall_after_a_tick_names_the_task_that_blocks() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send(stall.spawned_at.line());
    let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
    let other: Arc<Executor<'static>> = Arc::default();
    other.spawn(async {}).detach();
    let line = line!() + 1;
    let blocks = runtime.spawn(async move {
        assert!(other.try_tick());
        thread::sleep(Duration::from_millis(100));
    });
    assert_eq!(told.recv_timeout(SOON), Ok(line));
    runtime.block_on(blocks);
}
