//! What each thread is at, as `Runtime::threads` tells: every role is seen, whoever asks, and whenever.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Handle, Role, Runtime, ThreadInfo, ThreadKind, Timer};

use crate::busy::{Stop, compute};
use crate::setups::{Latch, OpenOnDrop, Ping, SOON, eventually, for_each_setup, for_setups, is_child};

fn count(threads: &[ThreadInfo], role: Role) -> usize {
    threads.iter().filter(|thread| thread.role == role).count()
}

/// The first of them that is so, which has to come.
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

/// One leads, asleep, and the others follow; nobody is in a task, and there are no more than there are to be.
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
            // One of the first that came late, while another was added for it, may have the name of that one.
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

/// Each worker blocks, and others are added: each is named, by the line of its task, and for how long; and the one that came leads.
#[test]
fn a_handler_that_blocks_is_seen_by_its_line_and_who_was_added_by_its_kind() {
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
            // Somebody answers: who was added, or a worker whose task was left to that one.
            ping.ping();
            let leads = find(runtime, "somebody leads", |thread| thread.role == Role::Leads);
            assert!(leads.spawned_at.is_none() && leads.to_string().ends_with(" leads"), "{leads}");
            let added = find(runtime, "somebody was added", |thread| thread.kind != ThreadKind::Worker);
            let text = added.to_string();
            assert!(text.contains(&format!(" ({}) ", added.kind)), "{text}");
            let long =
                |thread: &ThreadInfo| blocked(thread) && thread.in_poll_for > Some(Duration::from_millis(20));
            let stuck = find(runtime, "it is known for how long", long);
            assert!(!stuck.in_block_on && stuck.in_poll_for < Some(SOON), "{stuck:?}");
            let text = stuck.to_string();
            assert!(
                text.contains(" blocks for ") && text.contains(", in the task spawned at tests"),
                "{text}"
            );
            drop(_end);
            eventually("nobody is blocked", || !runtime.threads().iter().any(blocked));
        },
    );
}

/// Who computes is told from who blocks, and beside it there is a reserve. (On a machine that others use it may be taken for something else,
/// and get a worker more; but not each time.)
#[test]
fn a_task_that_computes_is_seen_and_the_reserve_beside_it() {
    let reserves = Arc::new(AtomicUsize::new(0));
    let found = reserves.clone();
    for_setups(
        |setup| setup.threads <= 2,
        move |setup, runtime| {
            let stop = Stop(Arc::default());
            let mut ping = Ping::new(runtime);
            for _ in 0..setup.threads {
                let stop = stop.0.clone();
                runtime.spawn(async move { compute(&stop) }).detach();
            }
            let computes = |thread: &ThreadInfo| thread.role == Role::Computes && thread.spawned_at.is_some();
            let stuck = find(runtime, "one computes", computes);
            assert!(stuck.to_string().contains(" computes for "), "{stuck}");
            ping.ping();
            let added = find(runtime, "somebody was added", |thread| thread.kind != ThreadKind::Worker);
            found.fetch_add(usize::from(added.kind == ThreadKind::Reserve), SeqCst);
        },
    );
    assert!(reserves.load(SeqCst) > 0, "it was never a reserve");
}

/// Rivals have the only core that a task may use.
#[test]
fn a_task_without_a_core_starves() {
    if !is_child("threads::a_task_without_a_core_starves", ":") {
        return;
    }
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|core| cores.is_set(*core)).unwrap());
    let starves = || {
        let runtime = Runtime::builder().threads(2).build().unwrap();
        let stop = Stop(Arc::default());
        for _ in 0..6 {
            let stop = stop.0.clone();
            thread::spawn(move || {
                rustix::thread::sched_setaffinity(None, &one).unwrap();
                compute(&stop);
            });
        }
        let stopped = stop.0.clone();
        let task = runtime.spawn(async move {
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            while !stopped.load(SeqCst) {
                thread::yield_now();
            }
        });
        let start = Instant::now();
        let mut seen = false;
        while !seen && start.elapsed() < SOON / 5 {
            seen = count(&runtime.threads(), Role::Starves) > 0;
        }
        drop(stop);
        pollster::block_on(task);
        seen
    };
    assert!((0..5).any(|_| starves()), "it had a core each time");
}

/// A thread of the test's is seen as that: waiting, and in its future.
#[test]
fn a_thread_from_outside_is_a_caller() {
    for_each_setup(|runtime| {
        let (end, line) = (Latch::new(), OnceLock::new());
        thread::scope(|scope| {
            // In here: the scope waits for its thread also when an assertion has failed.
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

/// Where there may be no more workers, somebody is there only to lead.
#[test]
fn a_relief_is_seen_as_that() {
    let runtime = Runtime::builder().threads(1).max_threads(1).build().unwrap();
    let end = Latch::new();
    let _end = OpenOnDrop(end.clone());
    let _ping = Ping::new(&runtime);
    runtime.spawn(async move { end.wait() }).detach();
    let relief = |thread: &ThreadInfo| thread.kind == ThreadKind::Relief && thread.role == Role::Leads;
    let relief = find(&runtime, "somebody leads", relief);
    assert_eq!(relief.to_string(), "paceline-relief (relief) leads");
}

/// In a task, who asks is in it; in a `block_on`, in that.
#[test]
fn who_asks_is_seen_as_processing_and_never_as_leading() {
    // It may have computed for longer than one would think, where a sanitizer watches.
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
            // Also in one that is nested in it, which is in no runtime before it waits.
            let nested =
                runtime.spawn(async { paceline::block_on(async { self::me(&Handle::current().threads()) }) });
            let me = pollster::block_on(nested);
            assert!(is_at_work(&me) && me.spawned_at.is_some(), "{me}");
            let me = runtime.block_on(async { self::me(&runtime.threads()) });
            assert!(is_at_work(&me) && me.kind == ThreadKind::Caller && me.in_block_on, "{me}");
        }
    });
}

/// A worker that waits on top of a task leads or follows, and is in that task all the same; if it waits in another runtime, it is
/// blocked in its own, and a caller there.
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

/// In its hook a thread is in no `block_on`; another hook is on a thread that is none of them.
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
    let (spawned_at, guilty) = told.recv_timeout(SOON).unwrap();
    let guilty = guilty.expect("it is one of them");
    assert_eq!((guilty.role, guilty.spawned_at), (Role::Blocks, Some(spawned_at)));
}

/// Two readers that never pause, beside threads that come, block, compute and go: two never lead, no line is another's, and the work
/// goes on.
#[test]
fn readers_in_a_loop_see_no_nonsense_and_are_in_nobodys_way() {
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
            // At least for a moment in which much happens.
            while start.elapsed() < Duration::from_millis(60) || done.load(SeqCst) < 300 {
                assert!(start.elapsed() < SOON, "{}", runtime.metrics());
                let threads = runtime.threads();
                assert!(count(&threads, Role::Leads) <= 1, "{threads:#?}");
                let places = threads.iter().filter_map(|thread| thread.spawned_at);
                places.for_each(|at| assert!(at.file() == file!() && lines.contains(&at.line()), "{at}"));
                looks += 1;
            }
            looks
        };
        thread::scope(|scope| {
            let other = scope.spawn(reader);
            assert!(reader() > 10 && other.join().unwrap() > 10);
        });
    });
}

/// After the end there are none; until then, whoever is stuck.
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
        begun.recv_timeout(SOON).unwrap();
        runtime.shutdown(Duration::from_millis(5)).unwrap_err();
        let stuck = |thread: &ThreadInfo| thread.spawned_at.is_some_and(|at| at.line() == line);
        assert_eq!(runtime.threads().iter().filter(|thread| stuck(thread)).count(), 1);
        drop(_end);
        runtime.shutdown(SOON).unwrap();
        assert_eq!(runtime.threads().len(), 0, "{:?}", runtime.threads());
    });
}

/// A task that drains its own runtime may look all the while; whoever has a handle may do so after the end.
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
            eventually("somebody is there", || !runtime.threads().is_empty());
            let (begin, begun) = mpsc::sync_channel(1);
            let watch = {
                let handle = handle.clone();
                thread::spawn(move || {
                    let mut most = 0;
                    loop {
                        let now = handle.threads().len();
                        if now == 0 {
                            return most;
                        }
                        most = most.max(now);
                        _ = begin.try_send(());
                    }
                })
            };
            // It watches from before the drain.
            begun.recv_timeout(SOON).unwrap();
            let drains = runtime.spawn(async {
                let report = Handle::current().drain(SOON).await;
                (report.is_clean(), me(&Handle::current().threads()))
            });
            let (is_clean, me) = runtime.block_on(drains);
            // The last task is polled by whoever is there for it, in the loop or not.
            let is_at_work = matches!(me.role, Role::Processes | Role::Computes | Role::Outside);
            assert!(is_clean && is_at_work, "{me}");
            drop(runtime);
            let most = watch.join().unwrap();
            assert!((1..=setup.threads + 20).contains(&most), "{most} threads");
            assert!(handle.threads().is_empty());
        },
    );
}
