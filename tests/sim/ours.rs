//! This crate's own promises, each under a thousand seeds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use async_lock::{Barrier, Mutex, Semaphore};
use futures_lite::StreamExt;
use paceline::blocking::Job;
use paceline::sim::Sim;
use paceline::{Elapsed, Executor, Strand, Timer, clock, spawn, timeout, unblock};

/// Waits for a random time of up to ten milliseconds, or for none.
async fn pause() {
    let mut rng = paceline::sim::rng();
    match rng.below(3) {
        0 => {}
        1 => futures_lite::future::yield_now().await,
        _ => _ = Timer::after(Duration::from_micros(rng.below(10_000))).await,
    }
}

#[paceline::sim(seeds = 1000)]
fn a_channel_delivers_each_item_once_and_in_the_order_of_its_sender(sim: &mut Sim) {
    let (tell, told) = async_channel::bounded(3);
    for sender in 0..3 {
        let tell = tell.clone();
        sim.spawn(async move {
            for number in 0..5 {
                pause().await;
                tell.send((sender, number)).await.unwrap();
            }
        })
        .detach();
    }
    drop(tell);
    let receivers = [(); 2].map(|()| told.clone());
    let received = sim.block_on(async move {
        let tasks = receivers.map(|told| {
            spawn(async move {
                let mut received = Vec::new();
                while let Ok(item) = told.recv().await {
                    received.push(item);
                    pause().await;
                }
                received
            })
        });
        let mut received = Vec::new();
        for task in tasks {
            received.push(task.await);
        }
        received
    });
    for items in &received {
        for sender in 0..3 {
            let numbers = items.iter().filter(|item| item.0 == sender).map(|item| item.1);
            assert!(numbers.is_sorted(), "{received:?}");
        }
    }
    let mut all = received.concat();
    all.sort_unstable();
    assert_eq!(all, (0..3).flat_map(|sender| (0..5).map(move |n| (sender, n))).collect::<Vec<_>>());
}

#[paceline::sim(seeds = 1000)]
fn timers_fire_on_time_and_those_that_are_set_anew_at_their_last_time(sim: &mut Sim) {
    let mut rng = sim.rng();
    for _ in 0..10 {
        let [first, then] = [(); 2].map(|()| Duration::from_micros(rng.below(20_000)));
        sim.spawn(async move {
            let begin = clock::now();
            let mut timer = Timer::after(first);
            if timeout(Duration::from_millis(7), &mut timer).await.is_err() {
                assert_eq!(clock::now() - begin, Duration::from_millis(7));
                timer.set_after(then);
                timer.await;
                assert_eq!(clock::now() - begin, Duration::from_millis(7) + then);
            } else {
                assert_eq!(clock::now() - begin, first);
            }
        })
        .detach();
    }
    assert_eq!(sim.run_for(Duration::from_secs(1)).panics, 0);
}

#[paceline::sim(seeds = 1000)]
fn tasks_are_joined_cancelled_or_detached(sim: &mut Sim) {
    let done = Arc::new(AtomicU32::new(0));
    let counts = done.clone();
    sim.block_on(async move {
        let work = |weight| {
            let counts = counts.clone();
            async move {
                pause().await;
                counts.fetch_add(weight, Relaxed);
                weight
            }
        };
        let joined = spawn(work(1));
        spawn(work(10)).detach();
        let cancelled = spawn(async {
            Timer::after(Duration::from_secs(60)).await;
            unreachable!("it is cancelled");
        });
        let raced = spawn(work(100));
        pause().await;
        drop(cancelled);
        let raced = raced.cancel().await;
        let before = counts.load(Relaxed);
        assert_eq!(raced.is_some(), before >= 100);
        assert_eq!(joined.await, 1);
        Timer::after(Duration::from_secs(1)).await;
        assert_eq!(counts.load(Relaxed) % 100, 11);
    });
    assert_eq!(sim.run_for(Duration::from_secs(120)).panics, 0);
}

#[paceline::sim(seeds = 1000)]
fn a_strand_runs_one_operation_at_a_time_in_the_order_of_each_caller(sim: &mut Sim) {
    let strand = Strand::new(VecDeque::new());
    let tasks: Vec<_> = (0..4u32)
        .map(|caller| {
            let strand = strand.clone();
            sim.spawn(async move {
                for number in 0..4u32 {
                    pause().await;
                    let operation = move |log: &mut VecDeque<_>| log.push_back((caller, number));
                    match number % 3 {
                        0 => strand.with(operation).await,
                        1 => strand.post(operation),
                        // Its polls are operations, too.
                        _ => {
                            let inner = strand.clone();
                            strand
                                .spawn(async move {
                                    pause().await;
                                    inner.post(operation)
                                })
                                .await;
                        }
                    }
                }
            })
        })
        .collect();
    sim.block_on(async move {
        for task in tasks {
            task.await;
        }
        let log = strand.with(|log| log.clone()).await;
        assert_eq!(log.len(), 16);
        for caller in 0..4 {
            assert!(log.iter().filter(|entry| entry.0 == caller).map(|entry| entry.1).eq(0..4), "{log:?}");
        }
    });
}

#[paceline::sim(seeds = 1000)]
fn locks_and_barriers_of_other_crates_hold(sim: &mut Sim) {
    let (inside, permits) = (Arc::new(Mutex::new(0)), Arc::new(Semaphore::new(2)));
    let (barrier, together) = (Arc::new(Barrier::new(4)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (inside, permits) = (inside.clone(), permits.clone());
            let (barrier, together) = (barrier.clone(), together.clone());
            sim.spawn(async move {
                {
                    let _permit = permits.acquire().await;
                    assert!(together.fetch_add(1, Relaxed) < 2);
                    pause().await;
                    together.fetch_sub(1, Relaxed);
                }
                let mut count = inside.lock().await;
                let before = *count;
                pause().await;
                *count = before + 1;
                drop(count);
                barrier.wait().await;
                assert_eq!(*inside.lock().await, 4);
            })
        })
        .collect();
    sim.block_on(async move {
        for task in tasks {
            task.await;
        }
    });
}

#[paceline::sim(seeds = 1000)]
fn closures_and_jobs_come_to_their_end_or_miss_their_deadline(sim: &mut Sim) {
    sim.block_on(async {
        let begin = clock::now();
        let jobs: Vec<_> = (0..4u64)
            .map(|number| Job::new(move || number).timeout(Duration::from_millis(number * 10)).submit())
            .collect();
        let closures: Vec<_> = (0..4u64).map(|number| unblock(move || number)).collect();
        for (job, number) in jobs.into_iter().zip(0..) {
            match job.await {
                Ok(answer) => assert_eq!(answer, number),
                Err(_) => assert!(clock::now() - begin >= Duration::from_millis(number * 10)),
            }
        }
        for (closure, number) in closures.into_iter().zip(0..) {
            assert_eq!(closure.await, number);
        }
    });
}

#[paceline::sim(seeds = 1000)]
fn an_executor_inside_of_the_simulation_runs_all_of_its_tasks(sim: &mut Sim) {
    let sum = sim.block_on(async {
        let executor = Executor::new();
        let tasks: Vec<_> = (0..8u32)
            .map(|number| {
                executor.spawn(async move {
                    pause().await;
                    number
                })
            })
            .collect();
        executor
            .run(async {
                let mut sum = 0;
                for task in tasks {
                    sum += task.await;
                }
                sum
            })
            .await
    });
    assert_eq!(sum, 28);
}

#[paceline::sim(seeds = 1000)]
fn a_timeout_and_a_result_exclude_each_other(sim: &mut Sim) {
    let (tell, told) = async_channel::unbounded();
    sim.spawn(async move {
        for number in 0..5u32 {
            Timer::after(Duration::from_millis(10)).await;
            if tell.send(number).await.is_err() {
                return;
            }
        }
    })
    .detach();
    sim.block_on(async move {
        let (mut next, mut late) = (0, 0);
        let mut told = Box::pin(told);
        // The deadline is that of the third message: either of the two comes first.
        while next < 5 {
            match timeout(Duration::from_millis(10), told.next()).await {
                Ok(Some(number)) => {
                    assert_eq!(number, next);
                    next += 1;
                }
                Ok(None) => break,
                Err(Elapsed { .. }) => late += 1,
            }
        }
        assert!(next == 5 && late <= 6, "{next} {late}");
    });
}
