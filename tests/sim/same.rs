//! The same seed gives the same run.

use std::collections::HashSet;
use std::time::Duration;

use paceline::sim::{self, Order, Report, Sim};
use paceline::{Timer, spawn, timeout, unblock};

use super::in_another_process;

/// A program with some of everything: tasks that send, wait, block, are cancelled, and spawn others.
fn program(sim: &mut Sim) -> Report {
    let mut rng = sim.rng();
    sim.at(Duration::from_millis(50), || sim::note("half"));
    let (tell, told) = async_channel::bounded(2);
    for number in 0..5u64 {
        let (tell, wait) = (tell.clone(), Duration::from_millis(rng.below(20)));
        sim.spawn(async move {
            Timer::after(wait).await;
            let doubled = unblock(move || number * 2);
            let _ = timeout(Duration::from_millis(30), tell.send(doubled.await)).await;
            drop(spawn(Timer::after(Duration::from_secs(1))));
        })
        .detach();
    }
    drop(tell);
    sim.spawn(async move {
        while let Ok(number) = told.recv().await {
            sim::note(format_args!("got {number}"));
            Timer::after(Duration::from_millis(sim::rng().below(10))).await;
        }
    })
    .detach();
    sim.run_for(Duration::from_secs(5))
}

/// Fails if the choices, the clock, or anything that is hashed depends on more than the seed.
#[test]
fn a_seed_gives_the_same_run_twice_and_other_seeds_give_others() {
    for order in [Order::Fifo, Order::Random, Order::Pct(3)] {
        let run = |seed| program(Sim::new(seed).order(order));
        let reports: Vec<_> = (0..50).map(run).collect();
        assert!(reports.iter().zip(0..).all(|(report, seed)| *report == run(seed)), "{order:?}");
        let hashes: HashSet<_> = reports.iter().map(|report| report.hash).collect();
        assert_eq!(hashes.len(), 50, "{order:?}: the seed decides durations in any order");
        assert!(reports.iter().all(|report| report.elapsed == Duration::from_secs(5) && report.polls > 20));
    }
}

/// Threads that are busy, tasks of other runtimes, and how long a poll takes change nothing.
#[test]
fn what_else_the_process_does_changes_nothing() {
    let alone = program(&mut Sim::new(7));
    let beside = std::thread::scope(|scope| {
        let runs = |seed| (0..30).for_each(|_| _ = program(&mut Sim::new(seed)));
        let busy: Vec<_> = (0..4).map(|seed| scope.spawn(move || runs(seed))).collect();
        let others: Vec<_> = (0..100).map(|_| spawn(async {})).collect();
        let mut sim = Sim::new(7);
        sim.spawn(async { std::thread::sleep(Duration::from_millis(30)) }).detach();
        let slow = sim.run_for(Duration::from_nanos(1));
        drop(sim);
        others.into_iter().for_each(|other| paceline::block_on(other));
        let report = program(&mut Sim::new(7));
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((slow.elapsed, slow.polls), (Duration::from_nanos(1), 1));
        report
    });
    assert_eq!(beside, alone);
}

#[test]
#[ignore = "run by the test below, in another process"]
fn print_hash() {
    // Other numbers of tasks, and other addresses.
    paceline::block_on(spawn(async {}));
    let report = program(&mut Sim::new(7));
    println!("hash {:016x}", report.hash);
}

#[test]
fn another_process_has_the_same_hash() {
    let output = in_another_process("same::print_hash", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = format!("hash {:016x}", program(&mut Sim::new(7)).hash);
    assert!(text.contains(&expected), "{expected} is not in {text}");
}

/// A second simulation on the same thread, inside of the first.
#[test]
fn a_simulation_inside_of_another_one_has_a_clock_and_choices_of_its_own() {
    let inner = program(&mut Sim::new(3));
    let mut outer = Sim::new(4);
    let nested = outer.block_on(async {
        let (tell, told) = async_channel::bounded(1);
        let task = spawn(async move { told.recv().await });
        Timer::after(Duration::from_secs(1)).await;
        let report = {
            let mut sim = Sim::new(3);
            let report = program(&mut sim);
            // While the thread is in the inner one, this wakes a task of the outer one.
            tell.try_send(5).unwrap();
            report
        };
        assert_eq!(task.await, Ok(5));
        report
    });
    assert_eq!(nested, inner);
    assert_eq!(outer.report().elapsed, Duration::from_secs(1));
}
