//! Which workers count as blocked, which events as stuck, and how long a stall is said to last.

use std::future::Future;
use std::sync::mpsc;
use std::thread;

use super::super::observe::MemberSeen;
use super::*;
use crate::probe::Doing;
use crate::{Runtime, Task, Tuning};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);
/// How long a stall lasts before it is reported.
const STALL: Duration = Duration::from_millis(10);

/// Has a worker block in a task until the sender is dropped. Returns when it does.
fn block_a_worker(runtime: &Runtime) -> (mpsc::Sender<()>, Task<()>) {
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let task = runtime.spawn(async move {
        tell.send(()).unwrap();
        assert!(ended.recv().is_err(), "it is dropped");
    });
    told.recv().expect("a worker runs the task");
    (end, task)
}

/// A leader that is about to block is replaced, if too few workers would be left. Fails if workers that
/// blocked at the last look count although they are back: then one worker more is started each time.
#[test]
fn workers_that_are_back_do_not_count_as_blocked() {
    let runtime = Runtime::builder().threads(1).tuning(Tuning::default().max_blind(NEVER)).build().unwrap();
    let (pool, crew) = (&runtime.pool, runtime.pool.crew().expect("a runtime has one"));
    assert!(act::add_worker(pool, false));
    let blocked = [(); 2].map(|()| block_a_worker(&runtime));

    let mut audit = Audit::default();
    audit.memory.count_blocked(crew.live(), crew.config.threads);
    audit.look(pool, true);
    assert_eq!(crew.live(), 2, "one is about to block, and one is left");
    audit.look(pool, true);
    assert_eq!(crew.live(), 3, "another one is, and the look was just now");
    let (ends, tasks): (Vec<_>, Vec<_>) = blocked.into_iter().unzip();
    drop(ends);
    tasks.into_iter().for_each(pollster::block_on);
}

/// A thread that is gone has left an event in its share. Fails if that counts as one that will go on.
#[test]
fn an_event_that_a_thread_has_left_is_noticed_while_others_lead() {
    let runtime = Runtime::builder().threads(1).tuning(Tuning::default().max_blind(NEVER)).build().unwrap();
    let pool = &runtime.pool;
    // Leadership is vacant meanwhile.
    let (end, task) = block_a_worker(&runtime);
    let _guard = runtime.handle().enter();
    let listener = crate::Async::<std::net::TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
    let mut awaited = std::pin::pin!(crate::Timer::after(NEVER));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(awaited.as_mut().poll(&mut cx).is_pending());

    let mut audit = Audit::default();
    let mut rescues_after_a_look = || {
        audit.looked = None;
        audit.look(pool, false);
        pool.deputy.rescues.get()
    };
    let holds = pool.reactor.shares.join();
    holds.hold(listener.source());
    for rescues in [0, 1] {
        pool.leadership.taken.add(1);
        assert_eq!(rescues_after_a_look(), rescues);
    }
    // The rescue starts a worker, which leads, and steals the event, perhaps by now.
    if holds.take().is_none() {
        while runtime.metrics().events_stolen == 0 {
            std::thread::yield_now();
        }
    }
    drop(end);
    pollster::block_on(task);
}

/// On a machine with few cores, a thread without a core holds events at almost every look. Fails if another
/// one is woken for that each time.
#[test]
fn a_thread_that_goes_on_without_help_is_not_stuck() {
    let goes_on = |is_below, doing| MemberSeen { is_below, doing, ..MemberSeen::default() }.goes_on();
    assert!([None, Some(Doing::Waits)].into_iter().all(|doing| goes_on(false, doing)));
    let stuck = [Doing::Blocks, Doing::Computes, Doing::Dozes];
    assert!(!stuck.into_iter().any(|doing| goes_on(false, Some(doing))));
    assert!(!goes_on(true, None), "a `block_on` on top of it may wait for what it holds");
}

/// A look begins, and a task only after that: then the deputy finds the task, and again at the next look.
/// Fails if a stall is said to have begun before the look saw the task, or to be a tick longer than it was.
#[test]
fn a_stall_is_not_said_to_be_longer_than_it_was() {
    let (reports, reported) = mpsc::channel();
    let hook = move |stall: &crate::Stall| reports.send(stall.blocked_for).unwrap();
    let runtime = Runtime::builder()
        .threads(1)
        .tuning(Tuning::default().max_blind(NEVER))
        .on_stall(hook)
        .build()
        .unwrap();
    let pool = &runtime.pool;
    let begun = Instant::now();
    thread::sleep(2 * STALL);
    let before = Instant::now();
    let (end, task) = block_a_worker(&runtime);

    let mut audit = Audit::default();
    let _ = audit.observer.look(pool, false, begun);
    thread::sleep(2 * STALL);
    let now = Instant::now();
    let (_, scene) = audit.observer.look(pool, false, now);
    let found: Vec<_> =
        scene.members.iter().filter(|it| it.doing.is_some()).map(|place| place.since).collect();
    assert!(found.len() == 1 && found[0] > before, "{found:?}, and {before:?}");
    let blocked_for = loop {
        // A look is not left out because the last one was just now.
        audit.looked = None;
        audit.look(pool, false);
        if let Ok(blocked_for) = reported.recv_timeout(2 * STALL) {
            break blocked_for;
        }
    };
    let after = Instant::now();
    assert!(STALL <= blocked_for && blocked_for <= after - before, "{blocked_for:?}");
    drop(end);
    pollster::block_on(task);
}
