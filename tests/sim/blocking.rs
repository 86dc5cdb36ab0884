//! Closures that block, in a simulation.

use std::collections::HashSet;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, StreamExt};
use paceline::blocking::{Job, JobError};
use paceline::sim::{Sim, check};
use paceline::{Timer, Unblock, clock, spawn, unblock};

use super::panic_of;

/// Fails if a closure runs on a thread of its own, or at once.
#[test]
fn closures_run_on_the_simulation_s_thread_at_random_later_times() {
    let here = thread::current().id();
    let times: HashSet<Duration> = (0..200)
        .map(|seed| {
            Sim::new(seed).block_on(async move {
                let begin = clock::now();
                assert_eq!(unblock(|| thread::current().id()).await, here);
                clock::now() - begin
            })
        })
        .collect();
    assert!(
        times.len() > 12 && times.iter().all(|time| (1..=1 << 17).contains(&time.as_micros())),
        "{times:?}"
    );
}

#[test]
fn closures_overtake_each_other() {
    let orders: HashSet<Vec<u32>> = (0..100)
        .map(|seed| {
            Sim::new(seed).block_on(async {
                let (tell, told) = async_channel::unbounded();
                for number in 0..3 {
                    let tell = tell.clone();
                    unblock(move || tell.try_send(number).unwrap()).detach();
                }
                drop(tell);
                told.collect::<Vec<u32>>().await
            })
        })
        .collect();
    assert_eq!(orders.len(), 6);
}

/// Fails if the closure and its result come at the same time: then no job is lost, and none has an effect
/// that its caller does not learn of.
#[test]
fn a_deadline_passes_before_the_closure_after_its_result_or_in_between() {
    let mut outcomes = [0; 3];
    for seed in 0..300 {
        let ran = Arc::new(AtomicU32::new(0));
        let runs = ran.clone();
        let mut sim = Sim::new(seed);
        let result = sim.block_on(async move {
            let begin = clock::now();
            let job =
                Job::new(move || runs.fetch_add(1, Relaxed)).name("write").timeout(Duration::from_millis(5));
            let result = job.submit().await;
            assert!(clock::now() - begin <= Duration::from_millis(5));
            result
        });
        sim.run_for(Duration::from_secs(1));
        let outcome = match (&result, ran.load(Relaxed)) {
            (Ok(_), 1) => 0,
            (Err(JobError::TimedOut { .. }), 0) => 1,
            (Err(JobError::TimedOut { .. }), 1) => 2,
            other => panic!("{other:?}"),
        };
        outcomes[outcome] += 1;
    }
    assert!(outcomes.iter().all(|outcomes| *outcomes > 20), "{outcomes:?}");
}

#[test]
fn a_closure_that_was_cancelled_never_runs_and_a_panic_resumes() {
    for seed in 0..50 {
        let mut sim = Sim::new(seed);
        let ran = Arc::new(AtomicU32::new(0));
        let (runs, runs_too) = (ran.clone(), ran.clone());
        sim.block_on(async move {
            drop(unblock(move || runs.fetch_add(1, Relaxed)));
            let job = Job::new(move || runs_too.fetch_add(1, Relaxed)).submit();
            job.cancel();
            assert!(matches!(job.await, Err(JobError::Cancelled { .. })));
            Timer::after(Duration::from_secs(1)).await;
        });
        assert_eq!(ran.load(Relaxed), 0);
        assert_eq!(panic_of(|| sim.block_on(unblock(|| panic!("in a closure")))), "in a closure");
        let job = Sim::new(seed).block_on(async { spawn(Job::new(|| 6 * 7).submit()).await });
        assert_eq!(job, Ok(42));
    }
}

#[test]
fn streams_of_unblock_work() {
    check(7, |sim| {
        let (text, sum) = sim.block_on(async {
            let mut text = String::new();
            Unblock::new(Cursor::new("a stream")).read_to_string(&mut text).await.unwrap();
            let sum = Unblock::new(0..1000u32).fold(0, |sum, number| sum + number).await;
            (text, sum)
        });
        assert_eq!((text.as_str(), sum), ("a stream", 499_500));
    });
}

/// A closure may wait for tasks: the thread polls them meanwhile.
#[test]
fn a_closure_may_block_on_a_future() {
    for seed in 0..50 {
        let answer = Sim::new(seed).block_on(async {
            let (tell, told) = async_channel::bounded(1);
            spawn(async move {
                Timer::after(Duration::from_secs(3)).await;
                tell.send(5).await
            })
            .detach();
            unblock(move || paceline::block_on(async move { told.recv().await })).await
        });
        assert_eq!(answer, Ok(5));
    }
}

/// What is left at the end is cancelled on the simulation's thread.
#[test]
fn closures_that_are_left_are_dropped() {
    struct Leaves(Arc<AtomicU32>, thread::ThreadId);
    impl Drop for Leaves {
        fn drop(&mut self) {
            assert_eq!(thread::current().id(), self.1);
            self.0.fetch_add(1, Relaxed);
        }
    }
    let left = Arc::new(AtomicU32::new(0));
    let leaves = || Leaves(left.clone(), thread::current().id());
    let mut sim = Sim::new(7);
    let (one, two, three) = (leaves(), leaves(), leaves());
    sim.spawn(async move {
        unblock(move || drop(one)).detach();
        Job::new(move || drop(two)).submit().detach();
        std::future::pending::<()>().await;
        drop(three);
    })
    .detach();
    sim.run_for(Duration::from_nanos(1));
    assert_eq!(left.load(Relaxed), 0, "neither closure has begun");
    drop(sim);
    assert_eq!(left.load(Relaxed), 3);
}
