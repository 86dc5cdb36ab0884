//! Programs for tokio in a simulation of `paceline::sim`.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use paceline::sim::{self, Order, Sim, check};
use tokio::sync::{Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::{JoinSet, LocalSet, block_in_place, spawn_blocking, spawn_local, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

/// A server with a queue, workers that block, clients with timeouts, and a supervisor with `select!`.
async fn program() -> Vec<String> {
    let (requests, mut queue) = mpsc::channel::<(u32, oneshot::Sender<u32>)>(2);
    let (stop, stopped) = watch::channel(false);
    let permits = Arc::new(Semaphore::new(2));
    let served = Arc::new(Mutex::new(0));
    let count = served.clone();
    let server = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        let mut ticks = interval(Duration::from_millis(5));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopped = stopped;
        loop {
            tokio::select! {
                request = queue.recv() => {
                    let Some((number, reply)) = request else { break };
                    let (permits, count) = (permits.clone(), count.clone());
                    tasks.spawn(async move {
                        let _permit = permits.acquire_owned().await.unwrap();
                        let square = spawn_blocking(move || number * number).await.unwrap();
                        *count.lock().await += 1;
                        let _ = reply.send(square);
                    });
                }
                _ = ticks.tick() => yield_now().await,
                _ = stopped.changed() => break,
                Some(result) = tasks.join_next() => result.unwrap(),
            }
        }
        while tasks.join_next().await.is_some() {}
    });
    let mut clients = Vec::new();
    for number in 0..6 {
        let requests = requests.clone();
        clients.push(tokio::spawn(async move {
            sleep(Duration::from_millis(u64::from(number) * 3)).await;
            let (reply, replied) = oneshot::channel();
            requests.send((number, reply)).await.unwrap();
            let answer = timeout(Duration::from_millis(40), replied).await;
            let text = format!("{number}: {:?}", answer.map_err(|_| "late"));
            sim::note(&text);
            text
        }));
    }
    let mut texts = Vec::new();
    for client in clients {
        texts.push(client.await.unwrap());
    }
    stop.send(true).unwrap();
    server.await.unwrap();
    texts.push(format!("served {}", served.lock().await));
    texts
}

#[test]
fn a_program_for_tokio_is_the_same_twice_under_each_order() {
    for order in [Order::Fifo, Order::Random, Order::Pct(3)] {
        let mut hashes = HashSet::new();
        let mut outcomes = HashSet::new();
        for seed in 0..40 {
            let report = check(seed, |sim| {
                outcomes.insert(sim.order(order).block_on(program()));
            });
            hashes.insert(report.hash);
        }
        assert_eq!(hashes.len(), 40, "{order:?}");
        assert!(outcomes.len() > 5, "{order:?}: {outcomes:?}");
    }
}

#[test]
fn time_is_the_simulation_s() {
    let begin = std::time::Instant::now();
    let mut sim = Sim::new(7);
    sim.block_on(async {
        let begin = Instant::now();
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(3600));
        sleep_until(begin + Duration::from_secs(7200)).await;
        assert_eq!(Instant::now() - begin, Duration::from_secs(7200));
        let late = timeout(Duration::from_secs(5), std::future::pending::<()>()).await;
        assert!(late.is_err());
        assert_eq!(Instant::now() - begin, Duration::from_secs(7205));
    });
    assert_eq!(sim.report().elapsed, Duration::from_secs(7205));
    assert!(begin.elapsed() < Duration::from_secs(60));
}

/// Both branches are always ready. Fails if the real tokio chooses.
#[test]
fn the_seed_decides_which_branch_of_a_select_is_first() {
    let choices = |seed| {
        Sim::new(seed).block_on(async {
            let mut choices = 0u64;
            for at in 0..60 {
                tokio::select! {
                    () = std::future::ready(()) => choices |= 1 << at,
                    () = std::future::ready(()) => {}
                    else => unreachable!("a branch is enabled"),
                }
                tokio::select! {
                    biased;
                    () = std::future::ready(()) => {}
                    () = std::future::ready(()) => unreachable!("the first one is ready"),
                }
            }
            choices
        })
    };
    let all: HashSet<_> = (0..50).map(choices).collect();
    assert_eq!(all.len(), 50);
    assert!((0..50).all(|seed| choices(seed) == choices(seed)));
}

#[test]
fn closures_that_block_run_on_the_simulation_s_thread() {
    let here = thread::current().id();
    check(7, |sim| {
        sim.block_on(async move {
            let handle = tokio::runtime::Handle::current();
            assert_eq!(spawn_blocking(|| thread::current().id()).await.unwrap(), here);
            let begin = Instant::now();
            // A closure that waits for a task.
            let inner = spawn_blocking(move || {
                handle.block_on(async { tokio::spawn(sleep(Duration::from_secs(1))).await })
            });
            inner.await.unwrap().unwrap();
            assert!(begin.elapsed() >= Duration::from_secs(1));
            assert_eq!(tokio::spawn(async { block_in_place(|| 5) }).await.unwrap(), 5);
            let panic = spawn_blocking(|| panic!("in a closure")).await.unwrap_err();
            assert!(panic.is_panic());
            let text = tokio::fs::read_to_string("Cargo.toml").await.unwrap();
            assert!(text.contains("[package]"));
        });
    });
}

#[test]
fn tasks_are_joined_aborted_and_local() {
    for seed in 0..20 {
        check(seed, |sim| {
            sim.block_on(async {
                let aborted = tokio::spawn(std::future::pending::<()>());
                aborted.abort();
                assert!(aborted.await.unwrap_err().is_cancelled());
                assert!(tokio::spawn(async { panic!("in a task") }).await.unwrap_err().is_panic());
                let notify = Arc::new(Notify::new());
                let notifies = notify.clone();
                tokio::spawn(async move {
                    sleep(Duration::from_millis(1)).await;
                    notifies.notify_one();
                });
                notify.notified().await;
                let (tell, mut told) = broadcast::channel(4);
                tell.send(1).unwrap();
                assert_eq!(told.recv().await, Ok(1));
            });
            // Tasks that are not `Send`, in the thread of the test.
            let sum = paceline::block_on(LocalSet::new().run_until(async {
                let numbers = std::rc::Rc::new(vec![1, 2, 3]);
                let handle = spawn_local(async move {
                    sleep(Duration::from_secs(1)).await;
                    numbers.iter().sum::<u32>()
                });
                handle.await.unwrap()
            }));
            assert_eq!(sum, 6);
        });
    }
}

/// Fails if a simulation leaves the thread in its runtime, or if a socket of the system is let in.
#[test]
fn what_is_outside() {
    let mut sim = Sim::new(7);
    let error = sim.block_on(async { tokio::net::TcpListener::bind("127.0.0.1:0").await }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(tokio::runtime::Handle::try_current().is_ok());
    drop(sim);
    assert!(tokio::runtime::Handle::try_current().is_err());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let begin = Instant::now();
    runtime.block_on(async { tokio::spawn(sleep(Duration::from_millis(10))).await.unwrap() });
    assert!(begin.elapsed() >= Duration::from_millis(10));
}
