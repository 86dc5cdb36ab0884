//! The states that `Runtime::threads` reports: every role is seen, from every place, at any time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Handle, Role, Runtime, ThreadInfo, ThreadKind, Timer};

use crate::busy::{Rivals, Stop};
use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, SOON, eventually, for_each_setup, for_setups, is_child};

fn count(threads: &[ThreadInfo], role: Role) -> usize {
    threads.iter().filter(|thread| thread.role == role).count()
}

/// Returns the first matching thread, which must appear.
#[track_caller]
fn find(runtime: &Runtime, what: &str, is_it: impl Fn(&ThreadInfo) -> bool) -> ThreadInfo {
    let mut found = None;
    eventually(what, || {
        found = runtime.threads().into_iter().find(&is_it);
        found.is_some()
    });
    found.unwrap()
}

fn me(threads: &[ThreadInfo]) -> ThreadInfo {
    threads.iter().find(|thread| thread.id == thread::current().id()).expect("I am one of them").clone()
}

/// One thread leads, asleep, and the others follow; no thread is in a task, and there are no more threads
/// than configured.
#[test]
fn of_idle_threads_one_leads_and_the_others_follow() {
    for_setups(
        |_| true,
        |setup, runtime| {
            drop(Ping::new(runtime));
            let mut threads = Vec::new();
            eventually("they are idle", || {
                threads = runtime.threads();
                threads.len() == setup.threads
                    && count(&threads, Role::Leads) == 1
                    && count(&threads, Role::Follows) == setup.threads - 1
            });
            // If one of the first threads was late and another was added for it, that one may have its name.
            let is_worker =
                |thread: &ThreadInfo| matches!(thread.kind, ThreadKind::Worker | ThreadKind::Replacement);
            assert!(threads.iter().all(is_worker), "{threads:#?}");
            assert!(threads.iter().all(|thread| thread.spawned_at.is_none() && thread.in_poll_for.is_none()));
            let names: Vec<_> = threads.iter().filter_map(|thread| thread.name.clone()).collect();
            assert_eq!(names.len(), setup.threads);
            assert!(names.iter().all(|name| name.starts_with("worker-")), "{names:?}");
        },
    );
}

/// Each worker blocks, and threads are added: each blocked one is reported with its task's line and the
/// duration, and an added one leads.
#[test]
fn a_handler_that_blocks_is_seen_by_its_line_and_an_added_thread_by_its_kind() {
    for_setups(
        |_| true,
        |setup, runtime| {
            let workers = setup.threads;
            let end = Latch::new();
            let _end = OpenOnDrop(end.clone());
            let mut ping = Ping::new(runtime);
            let line = line!() + 3;
            for _ in 0..workers {
                let end = end.clone();
                runtime.spawn(async move { end.wait() }).detach();
            }
            let blocked = |thread: &ThreadInfo| {
                let at = thread.spawned_at.map(|at| (at.file(), at.line()));
                thread.role == Role::Blocks && at == Some((file!(), line))
            };
            eventually("all are blocked", || {
                runtime.threads().iter().filter(|t| blocked(t)).count() == workers
            });
            // The ping is answered by an added thread, or by a worker that left its task to the added one.
            ping.ping();
            let leads = find(runtime, "a thread leads", |thread| thread.role == Role::Leads);
            assert!(leads.spawned_at.is_none() && leads.to_string().ends_with(" leads"), "{leads}");
            let added = find(runtime, "a thread was added", |thread| thread.kind != ThreadKind::Worker);
            let text = added.to_string();
            assert!(text.contains(&format!(" ({}) ", added.kind)), "{text}");
            let long =
                |thread: &ThreadInfo| blocked(thread) && thread.in_poll_for > Some(Duration::from_millis(20));
            let stuck = find(runtime, "it is known for how long", long);
            assert!(!stuck.in_block_on, "{stuck:?}");
            let text = stuck.to_string();
            assert!(
                text.contains(" blocks for ") && text.contains(", in the task spawned at tests"),
                "{text}"
            );
            drop(_end);
            eventually("no thread is blocked", || !runtime.threads().iter().any(blocked));
        },
    );
}

/// The task runs another executor, so its thread hosts a second runner, which is between its tasks. Fails if
/// the state of that runner replaces the state of the task.
#[test]
fn a_task_that_blocks_while_it_runs_another_executor_is_seen() {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let line = line!() + 1;
    let task = runtime.spawn(async move { paceline::Executor::new().run(async { end.wait() }).await });
    task.detach();
    let is_it = |thread: &ThreadInfo| thread.spawned_at.is_some_and(|at| at.line() == line);
    let long = |thread: &ThreadInfo| thread.in_poll_for > Some(Duration::from_millis(20));
    let stuck =
        find(&runtime, "it blocks", |thread| thread.role == Role::Blocks && is_it(thread) && long(thread));
    assert!(!stuck.in_block_on, "{stuck:?}");
}

/// Rivals use the only core that a task may use.
///
/// Measures for how long the system lets a thread wait for a core. The exact twins are the rules of
/// `src/probe/witness.rs`, and `no_thread_is_added_for_a_thread_that_waits_for_a_core` in
/// `src/model/computing.rs`.
#[test]
#[ignore = "timed: how long a thread waits for a core"]
fn a_task_without_a_core_starves() {
    if !is_child("threads::a_task_without_a_core_starves", ":") {
        return;
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let rivals = Rivals::new();
    let task = runtime.spawn(rivals.starve());
    find(&runtime, "it has no core", |thread| thread.role == Role::Starves);
    rivals.end();
    pollster::block_on(task);
}

/// A thread of the test is reported as a caller: waiting, and in its future.
#[test]
fn a_thread_from_outside_is_a_caller() {
    for_each_setup(|runtime| {
        let (end, line) = (Latch::new(), OnceLock::new());
        thread::scope(|scope| {
            // Inside, because the scope waits for its thread also if an assertion has failed.
            let _end = OpenOnDrop(end.clone());
            let (ended, line) = (end.clone(), &line);
            let (runtime, (wake, woken)) = (&**runtime, async_channel::bounded::<()>(1));
            scope.spawn(move || {
                line.set(line!() + 1).unwrap();
                runtime.block_on(async {
                    woken.recv().await.unwrap();
                    ended.wait();
                });
            });
            let caller = |thread: &ThreadInfo| thread.kind == ThreadKind::Caller;
            let waits = find(runtime, "it waits", |thread| caller(thread) && thread.role == Role::Follows);
            assert_eq!((waits.spawned_at, waits.name.as_deref()), (None, None), "{waits}");
            wake.send_blocking(()).unwrap();
            let blocks = find(runtime, "it blocks", |thread| caller(thread) && thread.role == Role::Blocks);
            let at = blocks.spawned_at.map(|at| at.line());
            assert!(blocks.in_block_on && blocks.in_poll_for.is_some(), "{blocks:?}");
            assert_eq!(at.as_ref(), line.get());
            assert!(blocks.to_string().contains("in the future of the block_on at "), "{blocks}");
        });
        assert!(!runtime.threads().iter().any(|thread| thread.kind == ThreadKind::Caller));
    });
}

/// If no more workers are allowed, a thread is there only to lead.
#[test]
fn a_relief_is_seen_as_that() {
    let runtime = Runtime::builder().threads(1).max_threads(1).build().unwrap();
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let _ping = Ping::new(&runtime);
    runtime.spawn(async move { end.wait() }).detach();
    let relief = |thread: &ThreadInfo| thread.kind == ThreadKind::Relief && thread.role == Role::Leads;
    let relief = find(&runtime, "a relief leads", relief);
    let number = relief.os_id.map_or_else(String::new, |number| format!(" ({number})"));
    assert_eq!(relief.to_string(), format!("paceline-relief{number} (relief) leads"));
}

/// The asking thread is in its task, or in its `block_on`.
#[test]
fn the_asking_thread_is_seen_as_processing_and_never_as_leading() {
    // The thread may have computed for long, if a sanitizer slows it down.
    let is_at_work = |me: &ThreadInfo| matches!(me.role, Role::Processes | Role::Computes);
    for_each_setup(move |runtime| {
        for _ in 0..50 {
            let task = runtime.spawn(async {
                Timer::after(Duration::from_micros(100)).await;
                me(&Handle::current().threads())
            });
            let me = pollster::block_on(task);
            assert!(is_at_work(&me) && me.kind != ThreadKind::Caller && !me.in_block_on, "{me}");
            assert_eq!(me.spawned_at.map(|at| at.file()), Some(file!()));
            // Also in a nested `block_on`, which is in no runtime before it waits.
            let nested =
                runtime.spawn(async { paceline::block_on(async { self::me(&Handle::current().threads()) }) });
            let me = pollster::block_on(nested);
            assert!(is_at_work(&me) && me.spawned_at.is_some(), "{me}");
            let me = runtime.block_on(async { self::me(&runtime.threads()) });
            assert!(is_at_work(&me) && me.kind == ThreadKind::Caller && me.in_block_on, "{me}");
        }
    });
}

/// A worker that waits on top of a task leads or follows, and is still in that task; if it waits in another
/// runtime, it is blocked in its own one, and a caller there.
#[test]
fn a_nested_block_on_is_seen_with_the_task_below_it() {
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let other = Arc::new(Runtime::builder().threads(1).build().unwrap());
    let (end, ended) = async_channel::bounded::<()>(1);
    let (ended_too, there) = (ended.clone(), other.clone());
    let line = line!() + 1;
    let own = runtime.spawn(async move { _ = paceline::block_on(ended.recv()) });
    let nested = |thread: &ThreadInfo| thread.spawned_at.is_some_and(|at| at.line() == line);
    let seen = find(&runtime, "it waits", |thread| nested(thread) && thread.role == Role::Follows);
    assert!(seen.kind != ThreadKind::Caller && !seen.in_block_on, "{seen}");

    let line = line!() + 1;
    let away = runtime.spawn(async move { _ = there.block_on(ended_too.recv()) });
    let nested = |thread: &ThreadInfo| thread.spawned_at.is_some_and(|at| at.line() == line);
    let seen = find(&runtime, "it is away", |thread| nested(thread) && thread.role == Role::Blocks);
    let is_it = |thread: &ThreadInfo| thread.id == seen.id && thread.kind == ThreadKind::Caller;
    let _there = find(&other, "it is there", is_it);
    drop(end);
    [own, away].into_iter().for_each(pollster::block_on);
}

/// In its hook a thread is in no `block_on`; another hook is called on a thread that is none of them.
#[test]
fn hooks_may_ask() {
    let (runtime, seen) = (Arc::new(OnceLock::<Handle>::new()), Arc::new(Mutex::new(Vec::new())));
    let (tell, told) = mpsc::channel();
    let built = Latch::new();
    let _built = OpenOnDrop(built.clone());
    let ask = {
        let (runtime, seen) = (runtime.clone(), seen.clone());
        move || {
            built.wait();
            seen.lock().unwrap().push(me(&runtime.get().unwrap().threads()));
        }
    };
    let stalled = {
        let runtime = runtime.clone();
        move |stall: &paceline::Stall| {
            let threads = runtime.get().unwrap().threads();
            let guilty = threads.into_iter().find(|thread| thread.id == stall.thread_id);
            _ = tell.send((stall.spawned_at, guilty));
        }
    };
    let built = Runtime::builder().threads(2).on_thread_start(ask).on_stall(stalled).build().unwrap();
    runtime.set(built.handle()).unwrap();
    drop(_built);
    eventually("both have asked", || seen.lock().unwrap().len() >= 2);
    let seen = seen.lock().unwrap().clone();
    assert!(seen.iter().all(|me| me.role == Role::Outside && me.kind == ThreadKind::Worker), "{seen:?}");
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    built.spawn(async move { end.wait() }).detach();
    let (spawned_at, guilty) = told.recv_soon().unwrap();
    let guilty = guilty.expect("it is one of them");
    assert_eq!((guilty.role, guilty.spawned_at), (Role::Blocks, Some(spawned_at)));
}

/// Two readers never pause, beside threads that start, block, compute and end: two threads never lead, each
/// line belongs to its task, and the work goes on.
#[test]
fn readers_in_a_loop_see_consistent_roles_and_delay_no_task() {
    for_each_setup(|runtime| {
        let stop = Stop(Arc::new(AtomicBool::new(false)));
        let done = Arc::new(AtomicUsize::new(0));
        let first = line!();
        for number in 0..8 {
            let (stop, done) = (stop.0.clone(), done.clone());
            let works = async move {
                while !stop.load(SeqCst) {
                    match number {
                        0 => thread::sleep(Duration::from_millis(3)),
                        1 => drop(Timer::after(Duration::from_micros(300)).await),
                        _ => future::yield_now().await,
                    }
                    done.fetch_add(1, SeqCst);
                }
            };
            runtime.spawn(works).detach();
        }
        let lines = first..line!();
        let reader = || {
            let (mut looks, start) = (0, Instant::now());
            // For at least a moment with much activity, and some looks.
            while start.elapsed() < Duration::from_millis(60) || done.load(SeqCst) < 300 || looks <= 10 {
                let threads = runtime.threads();
                assert!(count(&threads, Role::Leads) <= 1, "{threads:#?}");
                let places = threads.iter().filter_map(|thread| thread.spawned_at);
                places.for_each(|at| assert!(at.file() == file!() && lines.contains(&at.line()), "{at}"));
                looks += 1;
            }
        };
        thread::scope(|scope| {
            scope.spawn(reader);
            reader();
        });
    });
}

/// After the end there are no threads; until then, the stuck ones are listed.
#[test]
fn after_a_shutdown_there_are_none_but_those_that_are_stuck() {
    for_each_setup(|runtime| {
        let end = Latch::new();
        let _end = OpenOnDrop(end.clone());
        let (begin, begun) = mpsc::channel();
        let line = line!() + 1;
        let task = runtime.spawn(async move {
            begin.send(()).unwrap();
            end.wait();
        });
        task.detach();
        begun.recv_soon().unwrap();
        runtime.shutdown(Duration::from_millis(5)).unwrap_err();
        let stuck = |thread: &ThreadInfo| thread.spawned_at.is_some_and(|at| at.line() == line);
        assert_eq!(runtime.threads().iter().filter(|thread| stuck(thread)).count(), 1);
        drop(_end);
        runtime.shutdown(SOON).unwrap();
        assert_eq!(runtime.threads().len(), 0, "{:?}", runtime.threads());
    });
}

/// A task that drains its own runtime may list the threads all the time; a handle may do so after the end.
#[test]
fn a_drain_may_be_watched() {
    for_setups(
        |setup| setup.threads <= 2,
        |setup, _| {
            let runtime = setup.build();
            let handle = runtime.handle();
            for _ in 0..20 {
                runtime.spawn(Timer::after(Duration::from_millis(20))).detach();
            }
            eventually("there are threads", || !runtime.threads().is_empty());
            let (begin, begun) = mpsc::sync_channel(1);
            let watch = {
                let handle = handle.clone();
                thread::spawn(move || {
                    while !handle.threads().is_empty() {
                        _ = begin.try_send(());
                    }
                })
            };
            // The watch begins before the drain.
            begun.recv_soon().unwrap();
            let report = runtime.block_on(runtime.drain(Duration::from_secs(3600)));
            assert!(report.is_clean(), "{report}");
            drop(runtime);
            watch.join().unwrap();
            assert!(handle.threads().is_empty());
        },
    );
}
