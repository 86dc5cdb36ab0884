//! A task that blocks its thread costs that thread only; the pool still sees events.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use async_channel::bounded;
use futures_lite::{AsyncReadExt, future};
use paceline::{Async, LocalExecutor, Runtime, Timer, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, eventually, for_each_setup, for_setups, without_deputy};

/// A task that an event woke blocks its thread until another task's event was handled (tokio 4730).
#[test]
fn a_task_may_block_on_another_tasks_io() {
    for_each_setup(|runtime| {
        let (mut one, one_end) = UnixStream::pair().unwrap();
        let (mut other, other_end) = UnixStream::pair().unwrap();
        let (tell, told) = mpsc::channel();
        let (blocks, is_blocking) = mpsc::channel();
        let blocked = runtime.spawn(async move {
            let mut socket = Async::new(one_end).unwrap();
            socket.read_exact(&mut [0]).await.unwrap();
            blocks.send(()).unwrap();
            told.recv_soon().is_ok()
        });
        let helper = runtime.spawn(async move {
            let mut socket = Async::new(other_end).unwrap();
            socket.read_exact(&mut [0]).await.unwrap();
            let _ = tell.send(());
        });
        one.write_all(b"x").unwrap();
        is_blocking.recv_soon().unwrap();
        other.write_all(b"x").unwrap();
        assert!(runtime.block_on(blocked), "no thread handled the other task's event");
        runtime.block_on(helper);
    });
}

/// The thread that waits for the blocked worker hosts an executor of its own. The idle runner of that
/// executor cannot run the pool's tasks.
#[test]
fn an_idle_executor_elsewhere_does_not_count_as_help() {
    for_setups(
        |setup| setup.threads == 1,
        |_, runtime| {
            let runtime2 = runtime.clone();
            let local = LocalExecutor::new();
            let blocked = runtime.spawn(async move {
                let (tell, told) = mpsc::channel();
                let helper = runtime2.spawn(async move { tell.send(()).unwrap() });
                let helped = told.recv_soon().is_ok();
                helper.detach();
                helped
            });
            assert!(runtime.block_on(local.run(blocked)), "no thread was added for the task that waits");
        },
    );
}

/// As many tasks as workers block; other connections are served meanwhile.
#[test]
fn blocking_handlers_do_not_hang_the_pool() {
    for_setups(
        |_| true,
        |setup, runtime| {
            let mut ping = Ping::new(runtime);
            let latch = Latch::new();
            let free = OpenOnDrop(latch.clone());
            let (blocks, is_blocking) = mpsc::channel();
            let block = |_| {
                let (latch, blocks) = (latch.clone(), blocks.clone());
                runtime.spawn(async move {
                    blocks.send(()).unwrap();
                    latch.wait();
                })
            };
            let tasks: Vec<_> = (0..setup.threads).map(block).collect();
            (0..setup.threads).for_each(|_| is_blocking.recv_soon().unwrap());
            (0..40).for_each(|_| _ = ping.ping());
            drop(free);
            tasks.into_iter().for_each(|task| runtime.block_on(task));
        },
    );
}

/// A handler blocks right after a quiet time, long or short, or right after a short burst, when its thread
/// has stood the deputy down. Another connection is served all the same. Fails if a thread that wakes up does
/// not arm the deputy's switch (`Deputy::notify`), or if the switch does not stay armed
/// (`Duty::stand_down`): then no ping is answered for [`SOON`].
#[test]
fn lf5_a_handler_that_blocks_after_a_quiet_time_is_noticed() {
    for_setups(
        |setup| setup.threads <= 2,
        |_, runtime| {
            let mut ping = Ping::new(runtime);
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let (blocks, is_blocking) = mpsc::channel();
            let (end, ends) = mpsc::channel::<()>();
            let blocking = runtime.spawn(async move {
                let mut socket = Async::new(theirs).unwrap();
                let mut asked = [0];
                while socket.read_exact(&mut asked).await.is_ok() {
                    if asked[0] == b'b' {
                        blocks.send(()).unwrap();
                        let _ = ends.recv_soon();
                    }
                }
            });
            for quiet in [0, 300, 700, 1_100, 3_000, 20_000].map(Duration::from_micros) {
                for bursts in 0..3 {
                    // These bursts make the thread's last sleeps this long.
                    for _ in 0..bursts {
                        thread::sleep(quiet);
                        ours.write_all(b"-").unwrap();
                    }
                    thread::sleep(quiet);
                    ours.write_all(b"b").unwrap();
                    is_blocking.recv_soon().unwrap();
                    ping.ping();
                    end.send(()).unwrap();
                }
            }
            drop(ours);
            runtime.block_on(blocking);
        },
    );
}

/// As many tasks as workers, each of which blocks until all have started: every task gets a worker, without
/// the deputy. Fails if a worker that is notified of a task does not wake another one for the remaining
/// tasks.
#[test]
fn each_idle_worker_takes_one_of_the_tasks_that_block() {
    without_deputy(|setup, runtime| {
        for _ in 0..20 {
            let latch = Latch::new();
            let free = OpenOnDrop(latch.clone());
            let (blocks, is_blocking) = mpsc::channel();
            let block = |_| {
                let (latch, blocks) = (latch.clone(), blocks.clone());
                runtime.spawn(async move {
                    blocks.send(()).unwrap();
                    latch.wait();
                })
            };
            let tasks: Vec<_> = (0..setup.threads).map(block).collect();
            (0..setup.threads).for_each(|_| is_blocking.recv_soon().expect("it has found a worker"));
            drop(free);
            tasks.into_iter().for_each(|task| runtime.block_on(task));
        }
    });
}

/// All workers wait in a nested `block_on` for something that only the pool can provide: an event, a timer,
/// another task.
#[test]
fn every_worker_may_wait_in_a_nested_block_on() {
    for_setups(
        |_| true,
        |setup, runtime| {
            let barrier = Arc::new(std::sync::Barrier::new(setup.threads));
            let nested = |_| {
                let barrier = barrier.clone();
                runtime.spawn(async move {
                    barrier.wait();
                    block_on(async {
                        let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
                        let write = spawn(async move {
                            Timer::after(Duration::from_millis(1)).await;
                            futures_lite::AsyncWriteExt::write_all(&mut one, b"x").await.unwrap();
                        });
                        other.read_exact(&mut [0]).await.unwrap();
                        write.await;
                        1
                    })
                })
            };
            let tasks: Vec<_> = (0..setup.threads).map(nested).collect();
            let sum: usize = tasks.into_iter().map(|task| runtime.block_on(task)).sum();
            assert_eq!(sum, setup.threads);
        },
    );
}

/// The nested `block_on` hosts an executor of its own that is idle and cannot run the pool's tasks.
#[test]
fn a_nested_local_executor_may_wait_for_the_pool() {
    for_each_setup(|runtime| {
        let nested = runtime.spawn(async {
            let local = LocalExecutor::new();
            block_on(local.run(async { spawn(async { 7 }).await }))
        });
        assert_eq!(runtime.block_on(nested), 7);
    });
}

fn deeper(depth: usize) -> usize {
    if depth == 0 {
        return 0;
    }
    block_on(async {
        Timer::after(Duration::from_micros(100)).await;
        spawn(async move { deeper(depth - 1) }).await + 1
    })
}

#[test]
fn block_on_may_nest_deeper_than_the_pool() {
    for_each_setup(|runtime| {
        assert_eq!(runtime.block_on(runtime.spawn(async { deeper(9) })), 9);
    });
}

/// Fails if a runner polls its tasks without ever looking at the reactor: the budget in `Run::poll`. Without
/// the deputy, which would make other threads look.
#[test]
fn a_busy_run_queue_does_not_starve_the_poller() {
    without_deputy(|setup, runtime| {
        let mut ping = Ping::new(runtime);
        let stop = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicUsize::new(0));
        let spin = |_| {
            let (stop, turns) = (stop.clone(), turns.clone());
            runtime.spawn(async move {
                while !stop.load(SeqCst) {
                    turns.fetch_add(1, SeqCst);
                    future::yield_now().await;
                }
            })
        };
        let tasks: Vec<_> = (0..setup.threads).map(spin).collect();
        let mut pings = 0;
        eventually("both go on", || {
            ping.ping();
            pings += 1;
            pings > 20 && turns.load(SeqCst) > 100
        });
        stop.store(true, SeqCst);
        tasks.into_iter().for_each(|task| runtime.block_on(task));
    });
}

/// The thread that registered the sources blocks; other threads handle their events.
#[test]
fn sources_of_a_blocked_worker_are_served_by_others() {
    for_each_setup(|runtime| {
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let (tell, told) = mpsc::channel();
        let (mut ends, theirs): (Vec<_>, Vec<_>) = (0..8).map(|_| UnixStream::pair().unwrap()).unzip();
        let (blocks, is_blocking) = mpsc::channel();
        let blocked = runtime.spawn(async move {
            for end in theirs {
                let (mut socket, tell) = (Async::new(end).unwrap(), tell.clone());
                // A first read that waits, on this thread, so that its waker is made here.
                let read = async move {
                    socket.read_exact(&mut [0]).await.unwrap();
                    tell.send(()).unwrap();
                };
                spawn(read).detach();
            }
            future::yield_now().await;
            blocks.send(()).unwrap();
            latch.wait();
        });
        is_blocking.recv_soon().unwrap();
        for end in &mut ends {
            end.write_all(b"x").unwrap();
        }
        for _ in &ends {
            told.recv_soon().expect("an event waits for a thread that is busy");
        }
        drop(free);
        runtime.block_on(blocked);
    });
}

/// A wakes B, which goes into A's slot; then A blocks its thread until B has run.
#[test]
fn a_task_in_the_slot_of_a_thread_that_blocks_runs_elsewhere() {
    for_each_setup(|runtime| {
        let (tell, told) = bounded::<()>(1);
        let (ran, has_run) = mpsc::channel();
        let waits = Latch::new();
        let waits2 = waits.clone();
        let b = runtime.spawn(async move {
            waits2.open();
            told.recv().await.unwrap();
            ran.send(()).unwrap();
        });
        waits.wait();
        let a = runtime.spawn(async move {
            tell.try_send(()).unwrap();
            has_run.recv_soon().is_ok()
        });
        assert!(runtime.block_on(a), "the task was stranded behind the one that woke it");
        runtime.block_on(b);
    });
}

/// The same for more tasks than the slot holds, and for a task that the blocked task spawned.
#[test]
fn tasks_in_the_ring_of_a_thread_that_blocks_run_elsewhere() {
    for_each_setup(|runtime| {
        let runtime2 = runtime.clone();
        let a = runtime.spawn(async move {
            let (ran, has_run) = mpsc::channel();
            for _ in 0..20 {
                let ran = ran.clone();
                runtime2.spawn(async move { ran.send(()).unwrap() }).detach();
            }
            (0..20).all(|_| has_run.recv_soon().is_ok())
        });
        assert!(runtime.block_on(a));
    });
}

/// Two runtimes: one waits for the other inside a task.
#[test]
fn a_task_may_wait_for_another_runtime() {
    for_each_setup(|runtime| {
        let inner = Arc::new(Runtime::builder().threads(1).build().unwrap());
        let inner2 = inner.clone();
        let task = runtime.spawn(async move {
            inner2.block_on(async {
                Timer::after(Duration::from_millis(1)).await;
                inner2.spawn(async { 3 }).await
            })
        });
        assert_eq!(runtime.block_on(task), 3);
        drop(inner);
    });
}
