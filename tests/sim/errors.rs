//! What makes a simulation fail, and what it says then.

use std::collections::HashMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures_lite::future;
use paceline::net::TcpListener;
use paceline::sim::{self, Rng, Sim, check};
use paceline::{Timer, clock, spawn};

use super::panic_of;

/// Asserts that the text has these parts, in this order.
fn assert_parts(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is not in {rest:?}, which is the rest of: {text}")
        };
        rest = after;
    }
}

/// Returns `FILE:LINE` of a line in this file.
fn at(line: u32) -> String {
    format!("{}:{line}:", file!())
}

#[test]
fn a_deadlock_lists_the_tasks_that_wait() {
    let line = line!() + 4;
    let text = panic_of(|| {
        Sim::new(7).block_on(async {
            let (one, other) = (async_channel::bounded::<()>(1), async_channel::bounded::<()>(1));
            let waits = spawn(async move { other.1.recv().await });
            Timer::after(Duration::from_millis(1500)).await;
            let _ = one.1.recv().await;
            drop((waits, one.0, other.0));
        });
    });
    let parts =
        ["deadlock in the simulation with seed 7, 1.5s after", "Tasks that wait: 2", "task 1, spawned at"];
    assert_parts(&text, &parts);
    assert_parts(&text, &["task 2, spawned at", &at(line)]);
}

/// Fails if the clock leaps to a timer that is after its end, and if the message says that none is armed.
#[test]
fn a_deadlock_counts_the_timers_that_never_fire() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let deadlock = |at: &str, never: usize, future: fn() -> BoxFuture<'static, ()>| {
        let text = panic_of(|| Sim::new(7).block_on(future()));
        let timers = match never {
            0 => "no timer is armed, and".to_owned(),
            _ => format!(
                "no timer can fire (armed for no time, or for one after the end of the clock, 584 years after the start: {never}), and"
            ),
        };
        assert_parts(&text, &[&format!("with seed 7, {at} after its start: no task is ready, {timers} the")]);
    };
    deadlock("0ns", 0, || Box::pin(future::pending()));
    deadlock("0ns", 1, || Box::pin(async { _ = Timer::after(Duration::MAX).await }));
    deadlock("0ns", 1, || Box::pin(async { _ = Timer::never().await }));
    deadlock("0ns", 1, || Box::pin(async { _ = Timer::after(585 * YEAR).await }));
    // Those that are dropped, or are set to a time, do not count.
    deadlock("7s", 2, || {
        Box::pin(async {
            let [mut dropped, mut set] = [(); 2].map(|()| Timer::never());
            assert!(future::poll_once(&mut dropped).await.is_none());
            assert!(future::poll_once(&mut set).await.is_none());
            set.set_after(Duration::from_secs(7));
            drop((dropped, set.await));
            future::zip(Timer::after(600 * YEAR), Timer::never()).await;
        })
    });
    // One that does not come in time any more.
    deadlock("17975520000s", 1, || {
        Box::pin(async {
            for _ in 0..20 {
                Timer::after(30 * YEAR).await;
            }
        })
    });
}

#[test]
fn many_tasks_that_wait_are_not_all_listed() {
    let text = panic_of(|| {
        Sim::new(7).block_on(async {
            let tasks: Vec<_> = (0..50).map(|_| spawn(std::future::pending::<()>())).collect();
            for task in tasks {
                task.await;
            }
        });
    });
    assert_parts(&text, &["Tasks that wait: 51", "task 20, spawned", "and 31 more"]);
    assert!(!text.contains("task 21,"), "{text}");
}

/// A thread wakes a task while the simulation runs. Fails if a wake is not attributed to its thread.
#[test]
fn a_wake_from_another_thread_is_an_error_that_says_what_woke_what() {
    let line = line!() + 4;
    let text = panic_of(|| {
        let mut sim = Sim::new(7);
        let (tell, told) = async_channel::bounded(1);
        sim.spawn(async move { told.recv().await }).detach();
        sim.spawn(async move {
            Timer::after(Duration::from_secs(2)).await;
            let wakes = thread::Builder::new().name("rogue".into());
            wakes.spawn(move || tell.try_send(1)).unwrap().join().unwrap().unwrap();
            loop {
                Timer::after(Duration::from_secs(1)).await;
            }
        })
        .detach();
        sim.run_for(Duration::from_secs(3600));
    });
    let parts = ["the thread \"rogue\" (ThreadId(", "has woken task 1, spawned at", &at(line)];
    assert_parts(&text, &parts);
    assert_parts(&text, &["simulation with seed 7, 2s after its start"]);
}

/// The thread wakes the task when nothing else is left to do.
#[test]
fn a_wake_from_another_thread_explains_a_deadlock() {
    let text = panic_of(|| {
        Sim::new(7)
            .block_on(async {
                let (tell, told) = async_channel::bounded(1);
                let _thread = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    tell.try_send(1)
                });
                told.recv().await
            })
            .unwrap();
    });
    assert_parts(
        &text,
        &["a thread without a name", "has woken task 1, spawned at", "with seed 7, 0ns after"],
    );
}

#[test]
fn a_spawn_from_another_thread_is_an_error() {
    let text = panic_of(|| {
        Sim::new(7).block_on(async {
            let handle = paceline::Handle::current();
            thread::spawn(move || handle.spawn(async {}).detach()).join().unwrap();
            Timer::after(Duration::from_secs(1)).await;
        });
    });
    assert_parts(&text, &["a thread without a name", "has spawned a task from outside of the simulation"]);
}

/// The test itself may wake tasks between two runs: it is on the same thread.
#[test]
fn the_test_wakes_tasks_between_two_runs() {
    check(7, |sim| {
        let (tell, told) = async_channel::unbounded();
        let task = sim.spawn(async move { told.recv().await });
        sim.run_for(Duration::from_secs(1));
        tell.try_send(5).unwrap();
        sim.run_for(Duration::from_secs(1));
        assert!(task.is_finished());
        assert_eq!(sim.block_on(task), Ok(5));
    });
}

#[test]
fn a_socket_of_the_system_cannot_be_registered() {
    let register = async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        TcpListener::try_from(listener).map(drop)
    };
    let error = Sim::new(7).block_on(register).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert_parts(&error.to_string(), &["a simulation has no pipes, files or sockets of the system"]);
}

#[test]
fn the_clock_cannot_be_resumed() {
    let text = panic_of(|| Sim::new(7).block_on(async { clock::resume() }));
    assert_parts(&text, &["`clock::resume`: the clock of a simulation does not run"]);
}

/// Asserts that `check` fails, at an event after the first, and that the message has both runs and `parts`.
fn assert_differs(program: impl Fn(&mut Sim) + Sync, parts: &[&str]) {
    let text = panic_of(|| _ = check(7, &program));
    assert_parts(&text, &["not deterministic: with seed 7 twice, event ", " is the first that differs"]);
    assert_parts(&text, &["\n   first run: ", "\n  second run: "]);
    assert_parts(&text, parts);
}

#[test]
fn the_order_of_a_hash_map_is_found() {
    let line = line!() + 6;
    assert_differs(
        |sim| {
            let map: HashMap<u64, u64> = (0..50).map(|key| (key, key)).collect();
            let waits = map.into_keys().map(|key| Timer::after(Duration::from_millis(key)));
            for wait in waits {
                sim.spawn(wait).detach();
            }
            sim.run_for(Duration::from_secs(1));
        },
        &["first run: at ", "task ", ", spawned at ", &at(line), "second run: at ", "task ", &at(line)],
    );
}

/// The tasks do the same; only what they say differs. Fails if texts are not compared.
#[test]
fn what_a_program_says_is_compared() {
    assert_differs(
        |sim| {
            let map: HashMap<u64, u64> = (0..50).map(|key| (key, key)).collect();
            sim.block_on(async move { map.keys().for_each(|key| sim::note(format_args!("key {key}"))) });
        },
        &["task 1, spawned at", "notes \"key ", "task 1, spawned at", "notes \"key "],
    );
}

#[test]
fn the_system_s_clock_as_a_seed_is_found() {
    let begin = Instant::now();
    let line = line!() + 5;
    assert_differs(
        |sim| {
            let seed = begin.elapsed().as_nanos() as u64;
            let mut rng = Rng::new(seed);
            sim.spawn(async move {
                for _ in 0..10 {
                    Timer::after(Duration::from_nanos(rng.below(1_000_000))).await;
                }
            })
            .detach();
            sim.run_for(Duration::from_secs(1));
        },
        &["first run: at ", "task 1, spawned at", &at(line), "is woken, by no task", "second run: at "],
    );
}

/// Each run asks for how long a thread takes, which no seed decides: ten times as long in the second run.
#[test]
fn a_thread_that_decides_is_found() {
    let millis = AtomicU64::new(2);
    assert_differs(
        |sim| {
            let takes = Duration::from_millis(millis.fetch_add(18, Relaxed));
            sim.block_on(async move {
                let (tell, told) = async_channel::bounded(1);
                let _thread = thread::spawn(move || {
                    thread::sleep(takes);
                    tell.try_send(1)
                });
                while told.is_empty() {
                    Timer::after(Duration::from_micros(1)).await;
                }
            });
        },
        &["first run: ", "second run: "],
    );
}

/// The second run is shorter, or longer, than the first.
#[test]
fn a_run_that_ends_early_differs() {
    for [first, second] in [[3, 2], [2, 3]] {
        let mut rounds = [second, first].to_vec();
        let text = panic_of(|| {
            check(7, |sim| {
                let tasks = rounds.pop().unwrap();
                (0..tasks).for_each(|_| sim.block_on(async {}));
            });
        });
        let [longer, shorter] = if first < second { ["second", "first"] } else { ["first", "second"] };
        assert_parts(&text, &[&format!("{longer} run: at 0ns, task 3, spawned at")]);
        assert_parts(&text, &[&format!("{shorter} run: at 0ns, the test ends")]);
    }
}

/// Nothing happens but that the clock moves on.
#[test]
fn a_run_that_ends_at_another_time_differs() {
    let mut seconds = vec![2, 1];
    let text = panic_of(|| _ = check(7, |sim| _ = sim.run_for(Duration::from_secs(seconds.pop().unwrap()))));
    assert_parts(&text, &["first run: at 1s, the test ends", "second run: at 2s, the test ends"]);
}

#[test]
fn a_destructor_at_the_end_that_does_something_else_differs() {
    struct Notes(u32);
    impl Drop for Notes {
        fn drop(&mut self) {
            sim::note(self.0);
        }
    }
    let mut runs = 1..;
    let text = panic_of(|| {
        check(7, |sim| {
            let notes = Notes(runs.next().unwrap());
            sim.spawn(async move {
                let _notes = notes;
                Timer::never().await;
            })
            .detach();
            sim.run_for(Duration::from_secs(1));
        });
    });
    assert_parts(&text, &["first run: at 1s, ", "notes \"1\"", "second run: at 1s, ", "notes \"2\""]);
}

/// The clock stops 584 years after the start, where its nanoseconds are about to fill 64 bits.
#[test]
fn a_run_that_is_longer_than_the_clock_ends_with_it() {
    let mut sim = Sim::new(7);
    let years = |years: u64| Duration::from_secs(years * 365 * 24 * 60 * 60);
    for [run, ends] in [[580, 580], [600, 584], [1, 584]] {
        assert_eq!(sim.run_for(years(run)).elapsed, years(ends));
    }
    assert_eq!(sim.run_for(Duration::MAX).elapsed, years(584));
    let text = panic_of(AssertUnwindSafe(|| _ = sim.block_on(Timer::after(Duration::from_secs(1)))));
    assert_parts(&text, &["18417024000s after its start", "no timer can fire"]);
}

/// A panic of the program comes before a difference that it has not met.
#[test]
fn a_panic_of_the_program_is_passed_on() {
    let text = panic_of(|| _ = check(7, |_| panic!("as intended")));
    assert_eq!(text, "as intended");
}

#[test]
fn the_tasks_that_are_left_are_dropped_at_the_end() {
    let (tell, told) = async_channel::bounded::<()>(1);
    let mut sim = Sim::new(7);
    sim.spawn(async move { told.recv().await }).detach();
    sim.run_for(Duration::from_secs(1));
    drop(sim);
    assert!(tell.is_closed());
}

/// No call of the simulation follows the wake, so the drop reports it, and either run of a check. Fails if it
/// is not reported.
#[test]
fn what_no_call_has_reported_is_reported_at_the_end() {
    let wake_after_the_last_call = |sim: &mut Sim| {
        let (tell, told) = async_channel::bounded(1);
        sim.spawn(async move { told.recv().await }).detach();
        sim.run_for(Duration::from_secs(1));
        thread::spawn(move || tell.try_send(1)).join().unwrap().unwrap();
    };
    let of_the_drop = panic_of(|| wake_after_the_last_call(&mut Sim::new(7)));
    let mut runs = 0;
    let of_a_check = panic_of(|| {
        check(7, |sim| {
            runs += 1;
            wake_after_the_last_call(sim);
        });
    });
    assert_eq!(runs, 1);
    for text in [of_the_drop, of_a_check] {
        assert_parts(&text, &["has woken task 1,", "from outside of the simulation with seed 7"]);
    }
}

/// What a call has reported, the drop does not report again.
#[test]
fn a_failure_is_reported_once() {
    let mut sim = Sim::new(7);
    let text = panic_of(AssertUnwindSafe(|| sim.block_on(std::future::pending::<()>())));
    assert_parts(&text, &["deadlock in the simulation"]);
    drop(sim);
}

/// A future that a thread is about to wake is in no deadlock. Fails if the thread that waits does not look
/// again.
#[test]
fn a_block_on_that_a_thread_wakes_is_no_deadlock() {
    let sim = Sim::new(7);
    let (tell, told) = async_channel::bounded(1);
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        tell.try_send(1)
    });
    assert_eq!(paceline::block_on(told.recv()), Ok(1));
    thread.join().unwrap().unwrap();
    drop(sim);
}
