//! Promises that are broken on purpose: a thread that was to come back, to look for tasks or to lead blocks
//! in a call that the runtime does not know. The deputy notices, and all other work goes on (LF5).

use std::future::{Future, pending};
use std::io::Write;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, StreamExt, future};
use paceline::{Async, Executor, LocalExecutor, Runtime, Timer, block_on};

use crate::given_time::RecvSoon;
use crate::setups::{
    AsleepThread, Latch, SOON, Socket, eventually, for_each_setup, for_setups, is_child, sockets,
};

/// The `block_on` of another library.
type BlockOn = fn(Pin<Box<dyn Future<Output = ()> + Send>>);

/// Three such functions.
const FOREIGN: [BlockOn; 3] = [future::block_on, futures_executor::block_on, pollster::block_on];

/// Returns a socket that becomes readable in a moment, written by a thread of its own.
fn socket_in(moment: Duration) -> Socket {
    let (ours, mut theirs) = sockets();
    thread::spawn(move || {
        thread::sleep(moment);
        theirs.write_all(b"x").unwrap();
        // Not closed, because that would be one more event.
        mem::forget(theirs);
    });
    ours
}

pub const MOMENT: Duration = Duration::from_millis(20);

pub async fn a_socket() {
    Async::new(socket_in(MOMENT)).unwrap().read_exact(&mut [0]).await.unwrap();
}

pub async fn a_timer() {
    Timer::after(MOMENT).await;
}

/// Runs `body` on a thread of its own and expects its result soon.
#[track_caller]
pub fn soon<T: Send + 'static>(what: &str, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || tell.send(body()));
    match told.recv_soon() {
        Ok(result) => result,
        Err(mpsc::RecvError) => {
            panic!("{what}: {:?}", thread.join().unwrap_err().downcast_ref::<String>())
        }
    }
}

// --- a runner that was notified while its thread does something else

/// A task is spawned from outside at the moment when another task's timer fires. The other task then blocks
/// until the first has run. Sometimes the notified thread is the one that blocks. Fails if the deputy does
/// not look at the queues of executors (`Snapshot` in `watch/observe.rs`).
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
                    told.recv_soon().is_ok()
                });
                while Instant::now() < at + Duration::from_micros(20) {}
                runtime.spawn(async move { _ = tell.send(()) }).detach();
                assert!(pollster::block_on(blocks), "a task was not run beside an idle worker");
            }
        },
    );
}

/// Threads of two runtimes run one executor and have nothing else to do. A task waits in the slot of the
/// first thread while that thread blocks. Fails if a thread that runs an executor has no deputy
/// (`Station::start_watch_as_host`).
#[test]
fn lf5_an_executor_run_in_two_runtimes() {
    if !is_child("blocked_leader::lf5_an_executor_run_in_two_runtimes", ":") {
        return;
    }
    soon("the other runtime's thread runs it", move || {
        let executor: Arc<Executor<'static>> = Arc::default();
        let other = Runtime::builder().threads(1).build().unwrap();
        let (end, ended) = async_channel::bounded::<()>(1);
        let helper = block_on(executor.run(async {
            // In the pool, which has no source, no timer and no other thread.
            future::yield_now().await;
            let helps = executor.clone();
            let (sleeps, asleep) = AsleepThread::new();
            let helper = thread::spawn(move || {
                other.block_on(helps.run(async {
                    sleeps();
                    _ = ended.recv().await;
                }));
            });
            asleep.wait();
            for _ in 0..20 {
                let (tell, told) = mpsc::channel();
                executor.spawn(async move { tell.send(()).unwrap() }).detach();
                told.recv_soon().expect("the other thread runs it");
                future::yield_now().await;
            }
            helper
        }));
        drop(end);
        helper.join().unwrap();
    });
}

// --- a thread that was to come back and lead, in another library's `block_on`

/// The only thread of the pool waits for a timer or a socket in another library's `block_on`. In a process of
/// its own, where no other thread is in the default instance. Fails if no thread is found to lead (`relief`).
fn foreign_inside(name: &str, inside: fn(BlockOn)) {
    if is_child(name, ":") {
        for foreign in FOREIGN {
            soon(name, move || (0..3).for_each(|_| inside(foreign)));
        }
    }
}

#[test]
fn lf5_foreign_block_on_in_a_root_future() {
    foreign_inside("blocked_leader::lf5_foreign_block_on_in_a_root_future", |foreign| {
        block_on(async { foreign(Box::pin(a_timer())) });
        block_on(async { foreign(Box::pin(a_socket())) });
    });
}

#[test]
fn lf5_foreign_block_on_in_a_root_future_that_has_waited() {
    foreign_inside("blocked_leader::lf5_foreign_block_on_in_a_root_future_that_has_waited", |foreign| {
        block_on(async {
            for _ in 0..3 {
                Timer::after(Duration::from_micros(100)).await;
                foreign(Box::pin(a_timer()));
                foreign(Box::pin(a_socket()));
            }
        });
    });
}

/// The thread is already in the pool when the process's first timer or source is awaited elsewhere.
fn the_first_of_all(name: &str, first: fn() -> Pin<Box<dyn Future<Output = ()> + Send>>) {
    if is_child(name, ":") {
        soon(name, move || {
            block_on(async {
                future::yield_now().await;
                pollster::block_on(first());
            });
        });
    }
}

/// Fails if the first timer does not start the deputy: `Changed::First`.
#[test]
fn lf5_foreign_block_on_with_the_first_timer() {
    the_first_of_all("blocked_leader::lf5_foreign_block_on_with_the_first_timer", || Box::pin(a_timer()));
}

/// Fails if the first source does not start the deputy: `start_leader` in `Reactor::register`.
#[test]
fn lf5_foreign_block_on_with_the_first_source() {
    the_first_of_all("blocked_leader::lf5_foreign_block_on_with_the_first_source", || Box::pin(a_socket()));
}

#[test]
fn lf5_foreign_block_on_in_a_task() {
    foreign_inside("blocked_leader::lf5_foreign_block_on_in_a_task", |foreign| {
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

/// The same on all workers: fewer threads than would have to block, and none may be added.
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

/// A source of one pool is awaited in another pool's `block_on` that is nested in the first one's, also by a
/// task of the other pool.
#[test]
fn lf5_a_source_of_the_pool_below() {
    for_each_setup(|runtime| {
        let runtime = runtime.clone();
        soon("the pool below is led", move || {
            block_on(async {
                Timer::after(Duration::from_micros(100)).await;
                let (mut here, mut there) =
                    (Async::new(socket_in(MOMENT)).unwrap(), Async::new(socket_in(MOMENT)).unwrap());
                let mut timer = Timer::interval(Duration::from_secs(3600));
                assert!(future::poll_once(timer.next()).await.is_none());
                timer.set_interval(MOMENT);
                runtime.block_on(async { here.read_exact(&mut [0]).await.unwrap() });
                runtime.block_on(runtime.spawn(async move { there.read_exact(&mut [0]).await.unwrap() }));
                runtime.block_on(timer.next());
            });
        });
    });
}

// --- the end of a runtime

/// Threads wait for a source of a runtime under another library's `block_on`, from before or after the
/// runtime's shutdown, once or twice, at once or later.
#[test]
fn lf5_a_wait_beside_a_shutdown() {
    for_each_setup(|runtime| {
        for pause in [0, 0, 0, 1, 5] {
            let (near, mut far) = sockets();
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

/// A timer that was polled in a runtime, and is kept after the shutdown of that runtime.
#[test]
fn lf5_a_timer_of_a_runtime_that_was_shut_down() {
    for_each_setup(|runtime| {
        let mut timer = Timer::after(Duration::from_secs(3600));
        assert!(runtime.block_on(future::poll_once(&mut timer)).is_none());
        timer.set_after(MOMENT);
        runtime.shutdown(SOON).unwrap();
        soon("it fires", move || block_on(timer));
    });
}

/// Spawns on a runtime that is shutting down, while holding a lock that the destructor of another task's
/// future takes.
#[test]
fn spawning_beside_a_shutdown_drops_no_other_future() {
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
