//! The flight recorder: what it has of a runtime agrees with the runtime's own counters, and it works when no
//! thread of the runtime does.
#![allow(unreachable_pub)]

#[allow(dead_code)]
#[path = "it/given_time.rs"]
mod given_time;
#[path = "it/held_events.rs"]
mod held_events;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "it/idle_threads.rs"]
mod idle_threads;
#[allow(dead_code)]
#[path = "it/setups.rs"]
mod setups;

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::trace::{Action, FlightRecorder, FoundIn, Recorder, ThreadTrace, Trace, TraceEvent};
use paceline::{Async, LocalExecutor, Role, Runtime, Timer};

use crate::given_time::RecvSoon;
use crate::setups::eventually;

fn runtime(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).build().unwrap()
}

/// Starts a recorder with enough memory for a whole test.
fn record(runtime: &Runtime) -> Recorder {
    FlightRecorder::new().min_age(Duration::MAX).max_bytes(1 << 30).start(runtime)
}

/// Returns the events of all threads in the order of their times, each with the index of its thread.
fn all_events(trace: &Trace) -> Vec<(usize, TraceEvent)> {
    let of_thread = |(index, thread): (usize, &ThreadTrace)| -> Vec<(usize, TraceEvent)> {
        thread.events.iter().map(|event| (index, *event)).collect()
    };
    let mut all: Vec<_> = trace.threads.iter().enumerate().flat_map(of_thread).collect();
    all.sort_by_key(|(_, event)| event.at);
    all
}

fn count(trace: &Trace, counts: impl Fn(&Action) -> bool) -> u64 {
    all_events(trace).iter().filter(|(_, event)| counts(&event.action)).count() as u64
}

/// Returns the polls that were found in this place.
fn polls(trace: &Trace, place: FoundIn) -> u64 {
    count(trace, |action| matches!(action, Action::PollBegins { from, .. } if *from == place))
}

/// Asserts that no thread began to lead while another one led.
fn assert_one_leader(trace: &Trace) {
    let mut leads = HashSet::new();
    let mut terms = 0;
    let mut events = all_events(trace);
    // A thread notes that it leads after it has begun, and that it does not lead before it has ended.
    events.sort_by_key(|(_, event)| (event.at, event.action == Action::Role(Role::Leads)));
    for (thread, event) in events {
        match event.action {
            Action::Role(Role::Leads) => {
                leads.insert(thread);
                terms += 1;
            }
            Action::Role(_) => _ = leads.remove(&thread),
            _ => {}
        }
        assert!(leads.len() <= 1, "{leads:?} lead at {:?}", event.at);
    }
    assert!(terms > 0);
}

/// Serves one connection for a client of so many round trips.
fn ping_pong(runtime: &Runtime, trips: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = runtime.spawn(async move {
        let listener = Async::new(listener).unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut byte = [0];
        while stream.read_exact(&mut byte).await.is_ok() {
            stream.write_all(&byte).await.unwrap();
        }
    });
    let mut client = TcpStream::connect(address).unwrap();
    for trip in 0..trips {
        client.write_all(&[trip as u8]).unwrap();
        let mut answer = [0];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [trip as u8]);
    }
    drop(client);
    future::block_on(server);
}

#[test]
fn the_polls_are_those_of_the_metrics_and_one_thread_leads_at_a_time() {
    let runtime = runtime(4);
    let recorder = record(&runtime);
    // Threads that sleep have noticed the recorder when each of them has noted its role.
    eventually("each worker notes a role", || {
        recorder.snapshot().threads.iter().filter(|thread| !thread.events.is_empty()).count() >= 4
    });
    let before = runtime.metrics();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ping_pong(&runtime, 300));
        }
    });
    future::block_on(runtime.spawn(async {
        let tasks: Vec<_> = (0..500).map(|_| paceline::spawn(future::yield_now())).collect();
        for task in tasks {
            task.await;
        }
    }));
    eventually("all threads sleep", || {
        let threads = runtime.threads();
        threads.iter().all(|thread| matches!(thread.role, Role::Leads | Role::Follows))
    });
    let (trace, after) = (recorder.snapshot(), runtime.metrics());
    assert_eq!(polls(&trace, FoundIn::Slot), after.polls_direct - before.polls_direct);
    assert_eq!(polls(&trace, FoundIn::Queue), after.polls_surplus - before.polls_surplus);
    assert_eq!(polls(&trace, FoundIn::Stolen), after.polls_stolen - before.polls_stolen);
    assert_eq!(
        count(&trace, |action| *action == Action::PollEnds),
        count(&trace, |action| { matches!(action, Action::PollBegins { .. }) })
    );
    assert_eq!(count(&trace, |action| matches!(action, Action::Spawns { .. })), 500);
    assert_eq!(count(&trace, |action| matches!(action, Action::Ends { .. })), 505);
    let woken = count(&trace, |action| matches!(action, Action::Promotes { .. }));
    assert!(woken >= after.followers_woken - before.followers_woken, "{woken}");
    assert!(trace.threads.iter().all(|thread| thread.dropped == 0));
    assert_one_leader(&trace);
}

/// The thread that leads finds the event, wakes the task and polls it, with nothing in between. There is one
/// thread: a second one may see the next event while the first still runs the task.
#[test]
fn the_thread_that_sees_an_event_polls_the_task() {
    let builder = Runtime::builder().threads(1).max_threads(1);
    let runtime = builder.tuning(setups::without_looks()).build().unwrap();
    let recorder = record(&runtime);
    ping_pong(&runtime, 100);
    let trace = recorder.snapshot();
    let is_direct = |four: &[TraceEvent]| {
        let [Action::Events(1..), Action::Role(Role::Processes), Action::Wakes { task: woken }, next] =
            [0, 1, 2, 3].map(|at| four[at].action)
        else {
            return false;
        };
        matches!(next, Action::PollBegins { task, from: FoundIn::Slot, .. } if task == woken)
    };
    let direct_polls =
        |thread: &ThreadTrace| thread.events.windows(4).filter(|four| is_direct(four)).count() as u64;
    let direct: u64 = trace.threads.iter().map(direct_polls).sum();
    // The answer of the client may be there before the poll is over: one poll for several trips.
    assert!(direct > 0);
    assert_eq!(direct, polls(&trace, FoundIn::Slot));
}

/// Each thread that steals says how many events it takes, and whose they were.
#[test]
fn stolen_events_are_those_of_the_metrics_and_name_the_thread_that_held_them() {
    let runtime = held_events::builder().build().unwrap();
    let recorder = record(&runtime);
    let before = runtime.metrics().events_stolen;
    let blocked = held_events::block_beside(&runtime);
    let (trace, after) = (recorder.snapshot(), runtime.metrics().events_stolen);
    let thefts: Vec<_> = all_events(&trace)
        .into_iter()
        .filter_map(|(thief, event)| match event.action {
            Action::Steals { thread, events } => Some((thief, thread.expect("it is recorded"), events)),
            _ => None,
        })
        .collect();
    let stolen: u32 = thefts.iter().map(|(.., events)| events).sum();
    assert_eq!(u64::from(stolen), after - before);
    assert!(thefts.iter().all(|(thief, victim, _)| thief != victim), "{thefts:?}");
    let of_blocked = |(_, victim, _): &(usize, usize, u32)| trace.threads[*victim].thread_id == blocked;
    assert!(thefts.iter().any(of_blocked), "{thefts:?}");
}

#[test]
fn a_snapshot_names_the_lines_that_block_all_threads() {
    const THREADS: usize = 16;
    let runtime = Runtime::builder().threads(THREADS).max_threads(THREADS).build().unwrap();
    let recorder = record(&runtime);
    let (block, unblock) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
    /// Spawns a task that blocks until both barriers are passed. Returns the line of the call.
    macro_rules! block {
        () => {{
            let (block, unblock) = (block.clone(), unblock.clone());
            let task = runtime.spawn(async move {
                block.wait();
                unblock.wait();
            });
            (line!(), task)
        }};
    }
    #[rustfmt::skip]
    let tasks = [
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
        block!(),
    ];
    block.wait();
    // No thread of the runtime can run now.
    let trace = recorder.snapshot();
    let in_poll = |thread: &ThreadTrace| {
        let last = thread
            .events
            .iter()
            .rev()
            .find(|event| matches!(event.action, Action::PollBegins { .. } | Action::PollEnds));
        match last.map(|event| event.action) {
            Some(Action::PollBegins { spawned_at, .. }) => Some(spawned_at),
            _ => None,
        }
    };
    let blocked: Vec<_> = trace.threads.iter().filter_map(in_poll).collect();
    let mut lines: Vec<u32> = blocked.iter().map(|place| place.line()).collect();
    lines.sort_unstable();
    assert_eq!(lines, tasks.each_ref().map(|(line, _)| *line));
    unblock.wait();
    for (_, task) in tasks {
        future::block_on(task);
    }
}

#[test]
fn a_stall_hook_may_take_a_snapshot_and_the_recorder_has_the_stall() {
    let (give, given) = mpsc::channel::<Recorder>();
    let (tell, told) = mpsc::channel();
    let given = std::sync::Mutex::new(given);
    let runtime = Runtime::builder()
        .threads(2)
        .on_stall(move |stall| {
            if let Ok(recorder) = given.lock().unwrap().try_recv() {
                let in_hook = recorder.snapshot();
                _ = tell.send((stall.clone(), in_hook, recorder));
            }
        })
        .build()
        .unwrap();
    give.send(record(&runtime)).unwrap();
    let (end, ended) = mpsc::channel::<()>();
    let line = line!() + 1;
    let blocks = runtime.spawn(async move { ended.recv() });
    let (stall, in_hook, recorder) = told.recv_soon().unwrap();
    drop(end);
    let begins = |action: &Action| match action {
        Action::PollBegins { spawned_at, .. } => spawned_at.line() == line,
        _ => false,
    };
    assert_eq!(count(&in_hook, begins), 1);
    let find = |trace: &Trace| {
        all_events(trace).into_iter().find_map(|(_, event)| match event.action {
            Action::Stalls { thread, spawned_at, kind, lasted } => {
                let thread = trace.threads[thread.expect("it is recorded")].thread_id;
                Some((thread, spawned_at.line(), kind, lasted))
            }
            _ => None,
        })
    };
    let expected = (stall.thread_id, line, stall.kind, stall.blocked_for);
    eventually("the stall is recorded", || {
        let found = find(&recorder.snapshot());
        found.is_some_and(|found| {
            assert_eq!(found, expected);
            true
        })
    });
    assert!(future::block_on(blocks).is_err());
}

#[test]
fn timers_and_sleeps_are_recorded_and_roles_follow_each_other() {
    let runtime = runtime(2);
    let recorder = record(&runtime);
    let began = Instant::now();
    runtime.block_on(runtime.spawn(async {
        for _ in 0..3 {
            Timer::after(Duration::from_millis(5)).await;
        }
    }));
    let (lasted, trace) = (began.elapsed(), recorder.snapshot());
    assert_eq!(count(&trace, |action| *action == Action::TimerFires), 3);
    assert!(count(&trace, |action| *action == Action::Sleeps) >= 3);
    assert!(trace.taken_at >= lasted);
    for thread in &trace.threads {
        assert!(thread.events.is_sorted_by_key(|event| event.at));
        let role = |event: &TraceEvent| match event.action {
            Action::Role(role) => Some(role),
            _ => None,
        };
        let roles: Vec<_> = thread.events.iter().filter_map(role).collect();
        assert!(roles.windows(2).all(|two| two[0] != two[1]), "{roles:?}");
    }
    // The caller's thread was inside, and is outside now.
    let here = trace.threads.iter().find(|thread| thread.thread_id == thread::current().id());
    let last = here.expect("it was in a `block_on`").events.last().unwrap();
    assert_eq!(last.action, Action::Role(Role::Outside));
}

#[test]
fn a_recorder_that_is_dropped_or_replaced_gets_no_more_events() {
    let runtime = runtime(1);
    let first = record(&runtime);
    let run = || runtime.block_on(runtime.spawn(async {}));
    let spawned = |recorder: &Recorder| {
        count(&recorder.snapshot(), |action| matches!(action, Action::PollBegins { .. }))
    };
    run();
    eventually("it records", || {
        run();
        spawned(&first) > 0
    });
    let second = record(&runtime);
    eventually("the second records", || {
        run();
        spawned(&second) > 0
    });
    let seen = spawned(&first);
    run();
    assert_eq!(spawned(&first), seen);
    // The first one does not end the second one.
    drop(first);
    let seen = spawned(&second);
    eventually("the second goes on", || {
        run();
        spawned(&second) > seen
    });
}

#[test]
fn memory_is_bounded_and_the_newest_events_are_kept() {
    let runtime = runtime(1);
    let recorder = FlightRecorder::new().max_bytes(1 << 16).start(&runtime);
    let mut tasks = HashMap::new();
    for round in 0..20 {
        let all: Vec<_> = (0..200).map(|_| runtime.spawn(future::yield_now())).collect();
        future::block_on(async {
            for task in all {
                task.await;
            }
        });
        let trace = recorder.snapshot();
        let kept: usize = trace.threads.iter().map(|thread| thread.events.len()).sum();
        // The full chunks, and the chunk that each thread fills.
        assert!(kept * 24 <= (1 << 16) + trace.threads.len() * (1 << 14), "{kept}");
        let dropped: u64 = trace.threads.iter().map(|thread| thread.dropped).sum();
        tasks.insert(round, dropped);
    }
    assert!(tasks[&19] > tasks[&5] && tasks[&5] > 0, "{tasks:?}");
}

/// Fails if the end of a poll that was not noted is noted, or if a panic leaves a poll open.
#[test]
fn each_poll_that_ends_has_begun() {
    let runtime = runtime(1);
    let recorder = record(&runtime);
    let outer = runtime.spawn(async {
        let inner = LocalExecutor::new();
        let panics = inner.spawn(async { panic!("on purpose") });
        panics.detach();
        _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| inner.try_tick()));
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| future::block_on(outer))).is_err());
    let trace = recorder.snapshot();
    for thread in &trace.threads {
        let mut open = 0;
        for event in &thread.events {
            match event.action {
                Action::PollBegins { .. } => open += 1,
                Action::PollEnds => open -= 1,
                _ => {}
            }
            assert!(open >= 0, "{:?}", event);
        }
        assert_eq!(open, 0, "{:?}", thread.name);
    }
}

/// A runtime that is dropped inside of another one takes its last turn on that thread.
#[test]
fn the_end_of_another_runtime_is_no_turn_of_this_one() {
    let (one, other) = (runtime(1), runtime(1));
    let recorder = record(&one);
    one.block_on(async move {
        Timer::after(Duration::from_millis(1)).await;
        drop(other);
        Timer::after(Duration::from_millis(1)).await;
    });
    assert_one_leader(&recorder.snapshot());
}

#[test]
fn a_recorder_that_was_replaced_ends_at_that_time() {
    let runtime = runtime(1);
    let first = record(&runtime);
    let _second = record(&runtime);
    let ended = first.snapshot().taken_at;
    thread::sleep(Duration::from_millis(20));
    let later = first.snapshot().taken_at;
    assert!(later < ended + Duration::from_millis(10), "{ended:?}, {later:?}");
}
