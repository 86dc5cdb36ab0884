//! Workers beside one that computes: how many take tasks, and how many count as late.

use std::sync::mpsc;
use std::thread;

use super::*;
use crate::Runtime;

const SOON: Duration = Duration::from_secs(10);

/// Waits until it holds.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "{what}: not within {SOON:?}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Fails if workers that are there beside one that computes take tasks, which may compute as well. On other
/// systems computing looks like blocking.
#[cfg(target_os = "linux")]
#[test]
fn beside_as_many_that_compute_as_there_are_to_be_others_take_no_tasks() {
    // After a tenth of a second one more may. Then it is tried again.
    let are_spare = || {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        let (pool, crew) = (runtime.pool(), runtime.pool().crew().expect("a runtime has one"));
        let (end, ended) = mpsc::channel::<()>();
        let started = Instant::now();
        // The deputy looks as long as a thread is awake.
        let computes = runtime.spawn(async move {
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                std::hint::spin_loop();
            }
        });
        assert!((0..3).all(|_| act::add_thread(pool, 0)));
        eventually("permits are needed", || crew.state().limit() == 0);
        let (tell, told) = mpsc::channel();
        let waits = runtime.spawn(async move { tell.send(()).unwrap() });
        let taken = told.recv_timeout(10 * pool.deputy.tick());
        let is_soon = started.elapsed() < Duration::from_millis(90);
        drop(end);
        [computes, waits].into_iter().for_each(pollster::block_on);
        eventually("no permits are needed", || crew.state().limit() == usize::MAX);
        is_soon && taken.is_err()
    };
    assert!((0..10).any(|_| are_spare()), "they take tasks");
}

/// A leader that is about to block is replaced, if too few workers would be left. Fails if workers that
/// blocked at the last look count although they are back: then one worker more is started each time.
#[test]
fn workers_that_are_back_do_not_count_as_blocked() {
    const NEVER: Duration = Duration::from_secs(3600);
    let runtime = Runtime::builder().threads(1).max_blind(NEVER).build().unwrap();
    let (pool, crew) = (runtime.pool(), runtime.pool().crew().expect("a runtime has one"));
    assert!(act::add_thread(pool, 0));
    let (tell, told) = mpsc::channel();
    let (ends, tasks): (Vec<_>, Vec<_>) = [(); 2]
        .map(|()| {
            let (end, ended) = mpsc::channel::<()>();
            let tell = tell.clone();
            let task = runtime.spawn(async move {
                tell.send(()).unwrap();
                assert!(ended.recv_timeout(SOON).is_err(), "it is dropped");
            });
            (end, task)
        })
        .into_iter()
        .unzip();
    (0..2).for_each(|_| told.recv_timeout(SOON).expect("both workers run a task"));

    let mut audit = Audit::default();
    audit.memory.count_blocked(crew.live(), crew.threads());
    audit.look(pool, true);
    assert_eq!(crew.live(), 2, "one is about to block, and one is left");
    audit.look(pool, true);
    assert_eq!(crew.live(), 3, "another one is, and the look was just now");
    drop(ends);
    tasks.into_iter().for_each(pollster::block_on);
}

/// A thread that takes long to start counts as late, as long as it takes.
#[test]
fn a_worker_that_starts_is_late_after_a_while() {
    const NEVER: Duration = Duration::from_secs(3600);
    let (start, starts) = mpsc::channel::<()>();
    let starts = std::sync::Mutex::new(starts);
    let hook = move || _ = starts.lock().unwrap().recv_timeout(SOON);
    start.send(()).unwrap();
    let runtime = Runtime::builder().threads(1).max_blind(NEVER).on_thread_start(hook).build().unwrap();
    let (pool, crew) = (runtime.pool(), runtime.pool().crew().expect("a runtime has one"));
    let staff = |limit| {
        let staff = crew.staff(Instant::now(), limit);
        (staff.live, staff.late)
    };
    eventually("the worker has started", || staff(Duration::ZERO) == (1, 0));
    assert!(act::add_thread(pool, 0));
    assert_eq!(staff(NEVER), (2, 0));
    assert_eq!(staff(Duration::ZERO), (2, 1));
    start.send(()).unwrap();
    eventually("it has started", || staff(Duration::ZERO) == (2, 0));
}
