//! Which of the ready tasks is polled next.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline::Executor;
use paceline::sim::{Order, Sim};

/// Returns the order in which eight tasks are polled first, and their `executor` with them if there is one.
fn polled(seed: u64, order: Order, in_executor: bool) -> Vec<u32> {
    let polled = Arc::new(Mutex::new(Vec::new()));
    let mut sim = Sim::new(seed);
    sim.order(order);
    let notes = polled.clone();
    let note = move |number| {
        let notes = notes.clone();
        async move { notes.lock().unwrap().push(number) }
    };
    if in_executor {
        sim.block_on(async move {
            let executor = Executor::new();
            let tasks: Vec<_> = (0..8).map(|number| executor.spawn(note(number))).collect();
            executor
                .run(async {
                    for task in tasks {
                        task.await
                    }
                })
                .await;
        });
    } else {
        (0..8).for_each(|number| sim.spawn(note(number)).detach());
        sim.run_for(Duration::from_secs(1));
    }
    polled.lock().unwrap().clone()
}

/// Fails if the executors of a simulation take several tasks from their queue at once.
#[test]
fn fifo_is_the_order_of_spawns_and_random_is_another_one_for_each_seed() {
    for in_executor in [false, true] {
        let all: Vec<_> = (0..8).collect();
        for seed in 0..10 {
            assert_eq!(polled(seed, Order::Fifo, in_executor), all);
        }
        for order in [Order::Random, Order::Pct(1), Order::Pct(3)] {
            let orders: HashSet<_> = (0..200).map(|seed| polled(seed, order, in_executor)).collect();
            // Of 40 320 orders.
            assert!(orders.len() > 190, "{order:?}: {} orders", orders.len());
            let firsts: HashSet<_> = orders.iter().map(|order| order[0]).collect();
            assert_eq!(firsts.len(), 8, "{order:?}");
        }
    }
}

/// The user checks a flag, waits for a message, and then relies on the flag. The closer sends the message,
/// and sets the flag after ten more steps, each with the answer of a third task. So the bug needs the user to
/// be ready, and not polled, during twenty polls of others.
fn uses_after_close(sim: &mut Sim) -> bool {
    let (closed, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let [message, question, answer] = [(); 3].map(|()| async_channel::unbounded());
    let user = {
        let (closed, failed) = (closed.clone(), failed.clone());
        async move {
            if !closed.load(Relaxed) {
                message.1.recv().await.unwrap();
                failed.store(closed.load(Relaxed), Relaxed);
            }
        }
    };
    let closer = async move {
        let _ = message.0.send(()).await;
        for _ in 0..10 {
            question.0.send(()).await.unwrap();
            answer.1.recv().await.unwrap();
        }
        closed.store(true, Relaxed);
    };
    let answers = async move {
        while question.1.recv().await.is_ok() {
            answer.0.send(()).await.unwrap();
        }
    };
    sim.spawn(user).detach();
    sim.spawn(closer).detach();
    sim.spawn(answers).detach();
    assert_eq!(sim.run_for(Duration::from_secs(1)).panics, 0);
    failed.load(Relaxed)
}

/// Fails if `Pct` changes no priority.
#[test]
fn pct_finds_a_bug_of_depth_two_that_fifo_never_finds() {
    let found = |order| (0..1000).filter(|seed| uses_after_close(Sim::new(*seed).order(order))).count();
    let orders = [Order::Fifo, Order::Random, Order::Pct(1), Order::Pct(2), Order::Pct(3)];
    let [fifo, random, one, two, three] = orders.map(found);
    println!("of 1000 seeds: Fifo {fifo}, Random {random}, Pct(1) {one}, Pct(2) {two}, Pct(3) {three}");
    assert_eq!([fifo, one], [0, 0]);
    assert!(two > 3 && three > 3, "{two} and {three} seeds find it");
}

/// With strict priorities, a task that wakes itself until another one is done would keep that from ever being
/// polled. Fails if such a task keeps its priority.
#[test]
fn pct_polls_others_beside_a_task_that_wakes_itself() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        sim.order(Order::Pct(2));
        let done = Arc::new(AtomicBool::new(false));
        let spins = {
            let done = done.clone();
            async move {
                while !done.load(Relaxed) {
                    futures_lite::future::yield_now().await;
                }
            }
        };
        sim.spawn(async move { done.store(true, Relaxed) }).detach();
        sim.block_on(spins);
    }
}
