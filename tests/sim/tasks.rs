//! Tasks, timers and panics in a simulation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::{block_on, poll_once};
use paceline::sim::{Order, Sim, check};
use paceline::{Executor, LocalExecutor, Runtime, Timer, clock, spawn, timeout};

use super::panic_of;

#[test]
fn timers_fire_on_time_and_in_order() {
    check(7, |sim| {
        let (tell, told) = async_channel::unbounded();
        for seconds in [5, 1, 86_400, 3] {
            let tell = tell.clone();
            sim.spawn(async move {
                Timer::after(Duration::from_secs(seconds)).await;
                tell.try_send(seconds).unwrap();
            })
            .detach();
        }
        let report = sim.run_for(Duration::from_secs(100_000));
        let fired: Vec<u64> = std::iter::from_fn(|| told.try_recv().ok()).collect();
        assert_eq!(fired, [1, 3, 5, 86_400]);
        assert_eq!(report.elapsed, Duration::from_secs(100_000));
    });
}

/// The end of a run lies between what is before it and what is at it.
#[test]
fn a_run_ends_before_the_timers_of_its_end() {
    let mut sim = Sim::new(7);
    let [before, at] = [999, 1000].map(|millis| sim.spawn(Timer::after(Duration::from_millis(millis))));
    sim.run_for(Duration::from_secs(1));
    assert!(before.is_finished() && !at.is_finished());
    sim.run_for(Duration::from_nanos(1));
    assert!(at.is_finished());
}

#[test]
fn tasks_spawn_tasks_and_await_them() {
    fn tree(depth: u32) -> futures_lite::future::Boxed<u32> {
        Box::pin(async move {
            if depth == 0 {
                return 1;
            }
            let children = [(); 2].map(|()| spawn(tree(depth - 1)));
            let mut sum = 0;
            for child in children {
                sum += child.await;
            }
            sum
        })
    }
    for seed in 0..50 {
        assert_eq!(Sim::new(seed).block_on(tree(5)), 32);
    }
}

#[test]
fn a_cancelled_task_is_dropped_and_leaves_no_trace() {
    struct Drops(Arc<AtomicU32>);
    impl Drop for Drops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    for seed in 0..50 {
        let dropped = Arc::new(AtomicU32::new(0));
        let drops = Drops(dropped.clone());
        Sim::new(seed).block_on(async move {
            let task = spawn(async move {
                Timer::after(Duration::from_secs(1)).await;
                drop(drops);
                unreachable!("it is cancelled");
            });
            Timer::after(Duration::from_millis(500)).await;
            assert!(task.cancel().await.is_none());
            Timer::after(Duration::from_secs(1)).await;
        });
        assert_eq!(dropped.load(Relaxed), 1);
    }
}

/// A panic resumes where the task is awaited; else it is counted.
#[test]
fn panics_of_tasks() {
    let mut sim = Sim::new(7);
    sim.spawn(async { panic!("not awaited") }).detach();
    let report = sim.run_for(Duration::from_secs(1));
    assert_eq!((report.panics, report.elapsed), (1, Duration::from_secs(1)));
    assert_eq!(panic_of(|| sim.block_on(async { spawn(async { panic!("awaited") }).await })), "awaited");
    assert_eq!(panic_of(|| sim.block_on(async { panic!("the root") })), "the root");
    // The simulation goes on.
    assert_eq!(sim.block_on(async { 1 }), 1);
    assert_eq!(sim.report().panics, 3 + 1);
}

/// `Sim::at` counts from the start, and a time that is over comes at once.
#[test]
fn events_come_at_their_times() {
    let mut sim = Sim::new(7);
    let (tell, told) = async_channel::unbounded();
    let begin = sim.block_on(async { clock::now() });
    let note = move |name: &'static str| {
        let tell = tell.clone();
        move || tell.try_send((name, clock::now() - begin)).unwrap()
    };
    sim.at(Duration::from_secs(5), note("five"));
    sim.run_for(Duration::from_secs(7));
    sim.at(Duration::from_secs(5), note("late"));
    sim.at(Duration::from_secs(9), note("nine"));
    sim.run_for(Duration::from_secs(7));
    let came: Vec<_> = std::iter::from_fn(|| told.try_recv().ok()).collect();
    assert_eq!(
        came,
        [("five", 5), ("late", 7), ("nine", 9)].map(|(name, at)| (name, Duration::from_secs(at)))
    );
}

/// Executors of the program have the order of the simulation, and rounds that no clock ends.
#[test]
fn executors_of_the_program_are_simulated() {
    let run = |seed| {
        let report = check(seed, |sim| {
            sim.block_on(async {
                let executor = Executor::new();
                // More than a round of tasks that wake themselves, and take different times.
                let tasks: Vec<_> = (0..300u64)
                    .map(|number| {
                        executor.spawn(async move {
                            for _ in 0..3 {
                                if number % 100 == 0 {
                                    thread::sleep(Duration::from_micros(300));
                                }
                                futures_lite::future::yield_now().await;
                            }
                        })
                    })
                    .collect();
                let beside = spawn(async {
                    for _ in 0..20 {
                        futures_lite::future::yield_now().await;
                    }
                });
                executor
                    .run(async {
                        for task in tasks {
                            task.await
                        }
                    })
                    .await;
                beside.await;
            });
        });
        report.hash
    };
    assert_ne!(run(1), run(2));
    // Its tasks stay on the thread: in a `block_on` inside of the simulation.
    Sim::new(7).block_on(async {
        let executor = LocalExecutor::new();
        let task = executor.spawn(async { std::rc::Rc::new(5) });
        assert_eq!(*paceline::block_on(executor.run(task)), 5);
    });
}

#[test]
fn a_block_on_inside_of_a_task_polls_the_others() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        sim.order(Order::Random);
        let answer = sim.block_on(async {
            let other = spawn(async {
                Timer::after(Duration::from_secs(1)).await;
                5
            });
            paceline::block_on(other)
        });
        assert_eq!(answer, 5);
    }
}

/// Such a `block_on` reports a deadlock by itself.
#[test]
fn a_deadlock_of_a_block_on_inside_of_a_task_or_in_the_test_is_found() {
    let never = async_channel::bounded::<()>(1);
    let (receiver, other) = (never.1.clone(), never.1.clone());
    let mut sim = Sim::new(7);
    let text = panic_of(|| _ = sim.block_on(async move { paceline::block_on(receiver.recv()) }));
    assert!(text.contains("deadlock in the simulation with seed 7"), "{text}");
    let text = panic_of(|| _ = paceline::block_on(other.recv()));
    assert!(text.contains("deadlock in the simulation with seed 7"), "{text}");
}

/// While a simulation exists, its thread is in it.
#[test]
fn free_functions_in_a_test_act_on_the_last_simulation() {
    let (first, second) = (Sim::new(1), Sim::new(2));
    let hour = Duration::from_secs(3600);
    assert_eq!(paceline::block_on(async { spawn(Timer::after(hour)).await - clock::now() }), Duration::ZERO);
    assert_eq!([&first, &second].map(|sim| sim.report().elapsed), [Duration::ZERO, hour]);
    let third = Sim::new(3);
    drop(second);
    let timer = Timer::after(hour);
    drop(third);
    // In the first one again, with the deadline of the third: they begin at almost the same time.
    paceline::block_on(timer);
    let elapsed = first.report().elapsed;
    assert!(elapsed >= hour && elapsed < hour * 2, "{elapsed:?}");
    drop(first);
    let begin = Instant::now();
    paceline::block_on(Timer::after(Duration::from_millis(10)));
    assert!(begin.elapsed() >= Duration::from_millis(10));
}

#[test]
fn timeouts_are_exact() {
    for seed in 0..50 {
        Sim::new(seed).block_on(async {
            let begin = clock::now();
            let late = timeout(Duration::from_millis(100), Timer::after(Duration::from_millis(101))).await;
            assert!(late.is_err() && clock::now() - begin == Duration::from_millis(100));
            assert!(
                timeout(Duration::from_millis(100), Timer::after(Duration::from_millis(99))).await.is_ok()
            );
        });
    }
}

/// The other runtime has threads and a clock of its own, and works. Fails if its thread counts as one of the
/// simulation that would sleep for ever.
#[test]
fn another_runtime_works_inside_of_a_simulation() {
    let mut sim = Sim::new(7);
    sim.block_on(async {
        for builder in [Runtime::builder().threads(1), Runtime::builder().current_thread()] {
            let (runtime, begin) = (builder.build().unwrap(), Instant::now());
            let task = runtime.spawn(async { Timer::after(Duration::from_millis(20)).await });
            runtime.block_on(task);
            assert!(begin.elapsed() >= Duration::from_millis(20));
            runtime.block_on(async { paceline::net::UdpSocket::bind(("127.0.0.1", 0)).await.unwrap() });
        }
    });
    assert_eq!(sim.report().elapsed, Duration::ZERO);
}

/// Timers are due while a poll blocks the only thread: no other thread fires them meanwhile. Fails if a
/// simulation has a deputy.
#[test]
fn a_poll_that_blocks_changes_nothing() {
    let run = |blocks: Duration| {
        let mut sim = Sim::new(7);
        for _ in 0..10 {
            sim.spawn(Timer::after(Duration::from_millis(1))).detach();
        }
        sim.at(Duration::from_micros(1), move || {
            // The first poll moves the clock on.
            let mut advance = Box::pin(clock::advance(Duration::from_millis(2)));
            assert!(block_on(poll_once(&mut advance)).is_none());
            thread::sleep(blocks);
        });
        sim.run_for(Duration::from_secs(1))
    };
    assert_eq!(run(Duration::from_millis(100)), run(Duration::ZERO));
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("on purpose, in drop");
        }
    }
}

/// A destructor of a node panics in a crash, and others when the simulation is dropped. Each costs its own
/// task only. Fails if the panic leaves the drop of a task: the process aborts.
#[test]
fn a_destructor_that_panics_costs_its_own_task_only() {
    let mut sim = Sim::new(7);
    for name in ["crashes", "stays"] {
        sim.node(name, || async {
            let _bomb = Bomb;
            Timer::never().await;
        });
    }
    sim.run_for(Duration::from_secs(1));
    sim.network().crash("crashes");
    assert_eq!(sim.run_for(Duration::from_secs(1)).panics, 1);
    assert_eq!(sim.block_on(async { spawn(async { 1 }).await }), 1);
    drop(sim);
}
