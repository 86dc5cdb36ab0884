//! Direct polling, in the cases where it could go wrong.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;

use async_channel::bounded;
use futures_lite::future;
use paceline::{Executor, LocalExecutor, Runtime, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::setups::{Ping, eventually, for_each_setup, pair, without_looks};

/// Runs a future in a scene in which only their own thread empties slots and rings. (Before its first wait a
/// free `block_on` is in no pool, and its tasks go through injectors; and a deputy lets other threads take
/// the tasks of a thread without a core.)
fn undisturbed<T>(future: impl Future<Output = T>) -> T {
    let builder = Runtime::builder().threads(1).tuning(without_looks());
    builder.build().unwrap().block_on(future)
}

/// The waker is called under a mutex that the woken task takes: polling inside `wake` would deadlock.
#[test]
fn a_wake_under_a_mutex_that_the_task_takes_does_not_deadlock() {
    for_each_setup(|runtime| {
        type Shared = Arc<Mutex<(u32, Option<Waker>)>>;
        let shared: Shared = Arc::default();
        let reader = runtime.spawn({
            let shared = shared.clone();
            poll_fn(move |cx| {
                let mut shared = shared.lock().unwrap();
                shared.1 = Some(cx.waker().clone());
                if shared.0 == 100 { Poll::Ready(()) } else { Poll::Pending }
            })
        });
        let writer = runtime.spawn(async move {
            for _ in 0..100 {
                {
                    let mut shared = shared.lock().unwrap();
                    shared.0 += 1;
                    if let Some(waker) = &shared.1 {
                        waker.wake_by_ref();
                    }
                }
                future::yield_now().await;
            }
        });
        runtime.block_on(writer);
        runtime.block_on(reader);
    });
}

/// Each task of a long chain wakes the next one, in constant stack. The stack is small here.
#[test]
fn a_chain_of_wakes_needs_constant_stack() {
    const LENGTH: usize = 20_000;
    for_each_setup(|runtime| {
        let (first, mut last) = bounded::<usize>(1);
        for _ in 0..LENGTH {
            let (tell, told) = bounded(1);
            let before = std::mem::replace(&mut last, told);
            runtime
                .spawn(async move {
                    if let Ok(number) = before.recv().await {
                        tell.send(number + 1).await.unwrap();
                    }
                })
                .detach();
        }
        first.send_blocking(0).unwrap();
        assert_eq!(runtime.block_on(last.recv()), Ok(LENGTH));
    });
}

/// The longest chain, on one thread with an executor polled by hand: 100 000 tasks.
#[test]
fn a_chain_of_a_hundred_thousand_wakes_ends_on_one_thread() {
    let executor = Executor::new();
    let (first, mut last) = bounded::<usize>(1);
    for _ in 0..100_000 {
        let (tell, told) = bounded(1);
        let before = std::mem::replace(&mut last, told);
        let link = async move { tell.send(before.recv().await.unwrap() + 1).await };
        executor.spawn(link).detach();
    }
    first.send_blocking(0).unwrap();
    assert_eq!(block_on(executor.run(last.recv())), Ok(100_000));
}

/// Two tasks wake each other for ever. A third task on the same thread runs soon all the same, counted in
/// their turns.
#[test]
fn ping_pong_does_not_starve_a_third_task() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        let stop = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicUsize::new(0));
        let (left, right) = (bounded::<()>(1), bounded::<()>(1));
        left.0.try_send(()).unwrap();
        for (tell, told) in [(left.0, right.1), (right.0, left.1)] {
            let (stop, turns) = (stop.clone(), turns.clone());
            runtime
                .spawn(async move {
                    while !stop.load(SeqCst) && told.recv().await.is_ok() {
                        turns.fetch_add(1, SeqCst);
                        let _ = tell.send(()).await;
                    }
                })
                .detach();
        }
        eventually("they play", || turns.load(SeqCst) > 100);
        for _ in 0..10 {
            let (tell, told) = mpsc::channel();
            runtime.spawn(async move { tell.send(()).unwrap() }).detach();
            told.recv_soon().expect("the third task runs");
            ping.ping();
        }
        stop.store(true, SeqCst);
    });
}

/// The same with a bound, on an executor alone: a task in the ring waits for no more than the streak of
/// direct polls. Fails without `STREAK`.
#[test]
fn the_third_task_waits_for_a_bounded_number_of_polls() {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let local = LocalExecutor::new();
    let play = |tell: async_channel::Sender<()>, told: async_channel::Receiver<()>| {
        local.spawn(async move {
            while told.recv().await.is_ok() {
                if TURNS.fetch_add(1, SeqCst) == 100_000 {
                    return; // The third task never ran.
                }
                let _ = tell.send(()).await;
            }
        })
    };
    let (left, right) = (bounded::<()>(1), bounded::<()>(1));
    left.0.try_send(()).unwrap();
    let players = (play(left.0, right.1), play(right.0, left.1));
    let third = local.spawn(async {
        while TURNS.load(SeqCst) < 10 {
            future::yield_now().await;
        }
        let before = TURNS.load(SeqCst);
        assert!(before < 1_000, "it had to wait for {before} turns of the others before it ran at all");
        // Goes to the back of the ring, again and again.
        for _ in 0..10 {
            future::yield_now().await;
        }
        TURNS.load(SeqCst) - before
    });
    let waited = undisturbed(local.run(third));
    assert!(waited < 1_000, "ten turns of the third task took {waited} of the others'");
    drop(players);
}

/// Self-wakes go to the back: tasks in the ring come first. Fails if self-wakes go to the slot.
#[test]
fn self_wakes_go_to_the_back() {
    static EXECUTOR: Executor<'static> = Executor::new();
    static ORDER: Mutex<String> = Mutex::new(String::new());
    let task = |name: char| {
        EXECUTOR.spawn(async move {
            for _ in 0..3 {
                ORDER.lock().unwrap().push(name);
                future::yield_now().await;
            }
        })
    };
    // The tasks are woken inside a task, so that they are in the slot and the ring, not in the injector.
    let all = EXECUTOR.spawn(async move { future::zip(task('a'), future::zip(task('b'), task('c'))).await });
    undisturbed(EXECUTOR.run(all));
    let order = ORDER.lock().unwrap();
    for round in order.as_bytes().chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, b"abc", "not every task had a turn in each round: {order}");
    }
}

/// Tasks that were spawned from outside wait while the ring is busy with self-woken tasks, but not for ever.
/// Fails without `INJECTOR_TURN`.
#[test]
fn the_injector_gets_its_turn() {
    static EXECUTOR: Executor<'static> = Executor::new();
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let spinner = |_| {
        EXECUTOR.spawn(async {
            loop {
                assert!(TURNS.fetch_add(1, SeqCst) < 100_000, "the task from outside never ran");
                future::yield_now().await;
            }
        })
    };
    let spinners: Vec<paceline::Task<()>> = (0..2).map(spinner).collect();
    let outside = async {
        while TURNS.load(SeqCst) < 10 {
            future::yield_now().await;
        }
        let task = thread::spawn(|| EXECUTOR.spawn(async { TURNS.load(SeqCst) })).join().unwrap();
        let before = TURNS.load(SeqCst);
        let waited = task.await - before;
        assert!(waited < 500, "it waited for {waited} turns");
    };
    undisturbed(EXECUTOR.run(outside));
    drop(spinners);
}

/// Other threads wake a task while it is being polled: the task is polled again, never twice at once.
#[test]
fn a_task_woken_while_it_is_polled_is_polled_again_and_never_twice_at_once() {
    for_each_setup(|runtime| {
        let inside = Arc::new(AtomicUsize::new(0));
        let (told, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (give, get) = mpsc::channel::<Waker>();
        let mut give = Some(give);
        let task = runtime.spawn({
            let (inside, told, last) = (inside.clone(), told.clone(), last.clone());
            poll_fn(move |cx| {
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "polled twice at once");
                if let Some(give) = give.take() {
                    give.send(cx.waker().clone()).unwrap();
                }
                last.store(told.load(SeqCst), SeqCst);
                thread::yield_now();
                inside.fetch_sub(1, SeqCst);
                if last.load(SeqCst) == 500 { Poll::Ready(()) } else { Poll::Pending }
            })
        });
        let waker = get.recv_soon().unwrap();
        for number in 1..=500 {
            told.store(number, SeqCst);
            waker.wake_by_ref();
        }
        // The last wake comes after the last change, so some poll sees the change.
        runtime.block_on(task);
        assert_eq!(last.load(SeqCst), 500);
    });
}

/// Two executors on one thread: each polls only its own tasks, regardless of the waking thread.
#[test]
fn one_thread_hosts_two_executors() {
    let (one, other) = (Executor::new(), Executor::new());
    let (left, right) = (bounded::<u32>(1), bounded::<u32>(1));
    // Tasks record the executor in whose `run` they are polled.
    thread_local!(static INSIDE: Cell<u32> = const { Cell::new(0) });
    async fn play(own: u32, tell: async_channel::Sender<u32>, told: async_channel::Receiver<u32>) -> u32 {
        for round in 0..500 {
            let _ = tell.send(round).await;
            assert_eq!(told.recv().await, Ok(round));
            assert_eq!(INSIDE.get(), own, "polled by the other executor");
        }
        own
    }
    fn marked<T>(own: u32, future: impl Future<Output = T>) -> impl Future<Output = T> {
        let mut future = Box::pin(future);
        poll_fn(move |cx| {
            let before = INSIDE.replace(own);
            let result = future.as_mut().poll(cx);
            INSIDE.set(before);
            result
        })
    }
    let a = one.spawn(play(1, left.0, right.1));
    let b = other.spawn(play(2, right.0, left.1));
    let both = future::zip(marked(1, one.run(a)), marked(2, other.run(b)));
    assert_eq!(block_on(both), (1, 2));
    // One executor inside of the other: a task of the outer executor runs the inner one in a nested
    // `block_on`.
    let (tell, told) = bounded::<u32>(1);
    let outer_task = one.spawn(async move { told.recv().await });
    let nest = one.spawn(async move {
        let inner = Executor::new();
        let inner_task = inner.spawn(async move {
            tell.send(7).await.unwrap();
            future::yield_now().await;
            8
        });
        block_on(inner.run(inner_task))
    });
    assert_eq!(block_on(one.run(future::zip(nest, outer_task))), (8, Ok(7)));
}

/// Tasks that are not `Send`, woken from the leader's thread and from others, are polled only by their owner.
#[test]
fn local_tasks_are_polled_by_their_owner() {
    for_each_setup(|runtime| {
        let owner = thread::current().id();
        let polls = Rc::new(Cell::new(0));
        let local = LocalExecutor::new();
        let (tell, told) = bounded::<()>(1);
        let helper = runtime.spawn(async move {
            for _ in 0..100 {
                tell.send(()).await.unwrap();
            }
        });
        let task = local.spawn({
            let polls = polls.clone();
            async move {
                while told.recv().await.is_ok() {
                    assert_eq!(thread::current().id(), owner);
                    polls.set(polls.get() + 1);
                }
                let (mut one, mut other) = pair();
                let write =
                    spawn(async move { futures_lite::AsyncWriteExt::write_all(&mut one, b"x").await });
                futures_lite::AsyncReadExt::read_exact(&mut other, &mut [0]).await.unwrap();
                assert_eq!(thread::current().id(), owner);
                write.await.unwrap();
            }
        });
        runtime.block_on(local.run(task));
        assert_eq!(polls.get(), 100);
        runtime.block_on(helper);
    });
}
