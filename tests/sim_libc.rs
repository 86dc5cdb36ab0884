//! The operating system's clocks and random numbers in a simulation, with `sim_libc!`.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use paceline::net::{TcpListener, TcpStream};
use paceline::sim::{self, Sim, Verdict, check};
use paceline::trace::FlightRecorder;
use paceline::{Executor, Handle, Runtime, Timer, clock, spawn};

paceline::sim_libc!();

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const YEAR_2026: Duration = Duration::from_secs(1_767_225_600);

/// The order of a set, an instant as a seed, and the date, each as a text.
fn decide() -> String {
    let set: HashSet<u32> = (0..20).collect();
    let key = RandomState::new().hash_one(Instant::now());
    format!("{set:?} {key} {:?} {:?}", Instant::now(), SystemTime::now())
}

fn program(sim: &mut Sim) {
    sim.node("n1", || async {
        loop {
            Timer::after(Duration::from_millis(sim::rng().below(50))).await;
            sim::note(decide());
        }
    });
    sim.run_for(Duration::from_secs(5));
}

/// Without the macro, each of these three texts makes the check fail.
#[test]
fn what_the_system_decides_depends_on_the_seed_alone() {
    let hashes: HashSet<u64> = (0..20)
        .map(|seed| {
            let report = check(seed, program);
            assert_eq!(report, check(seed, program));
            report.hash
        })
        .collect();
    assert_eq!(hashes.len(), 20);
}

/// On a new thread, a simulation without a check makes the same choices as one with a check; also while a
/// recorder runs, as for `PACELINE_TRACE`. Fails if paceline makes another number of hash maps then.
#[test]
fn a_run_alone_and_one_with_a_trace_are_the_same() {
    for has_trace in [false, true] {
        let alone = thread::spawn(move || {
            let mut sim = Sim::new(7);
            let _recorder = has_trace.then(|| FlightRecorder::new().start_on(&Handle::current()));
            program(&mut sim);
            sim.report().hash
        });
        assert_eq!(alone.join().unwrap(), check(7, program).hash, "with a trace: {has_trace}");
    }
}

#[paceline::sim(seeds = 20)]
fn each_seed_has_a_thread_of_its_own(sim: &mut Sim) {
    static SEEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
    let key = RandomState::new().hash_one(1);
    let mut seen = SEEN.lock().unwrap();
    assert!(seen.iter().all(|(seed, known)| (*seed == sim.seed()) == (*known == key)));
    seen.push((sim.seed(), key));
}

#[test]
fn the_clocks_show_the_virtual_time() {
    let mut sim = Sim::new(7);
    let (begin, wall) = (Instant::now(), SystemTime::now());
    assert_eq!(begin, clock::now());
    sim.block_on(async move {
        assert_eq!(begin, Instant::now());
        Timer::after(HOUR).await;
        assert_eq!((begin.elapsed(), wall.elapsed().unwrap()), (HOUR, HOUR));
        thread::sleep(Duration::from_millis(2));
        assert_eq!(begin.elapsed(), HOUR, "a poll takes no time");
        spawn(Timer::at(Instant::now() + HOUR)).await;
        assert_eq!(Instant::now(), clock::now());
        clock::advance(HOUR).await;
        assert_eq!(Instant::now(), clock::now());
    });
    sim.run_for(HOUR);
    assert_eq!((begin.elapsed(), wall.elapsed().unwrap()), (4 * HOUR, 4 * HOUR));
    assert_eq!(Instant::now(), clock::now());
}

/// Other threads, and this one after the simulation, see the system's own clocks, and other random numbers.
#[test]
fn outside_of_a_simulation_nothing_is_changed() {
    let in_simulation = YEAR_2026..YEAR_2026 + HOUR;
    let wall = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let keys = |_| thread::spawn(|| RandomState::new().hash_one(1)).join().unwrap();
    let before = Instant::now();
    let sim = Sim::new(7);
    assert!(in_simulation.contains(&wall()));
    let elsewhere = thread::spawn(move || (wall(), before.elapsed())).join().unwrap();
    assert!(!in_simulation.contains(&elsewhere.0) && elsewhere.1 < HOUR);
    assert_eq!((0..5).map(keys).collect::<HashSet<_>>().len(), 5);
    drop(sim);
    assert!(!in_simulation.contains(&wall()) && before.elapsed() < HOUR);
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(2));
    assert!(begin.elapsed() >= Duration::from_millis(2));
}

/// Asserts that the thread is so far in a simulation.
fn assert_time(elapsed: Duration, sim: &Sim) {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!((wall - YEAR_2026, Instant::now()), (elapsed, clock::now()));
    assert_eq!(sim.report().elapsed, elapsed);
}

/// Two simulations on a thread, which end in either order. Each has its own time, also while the other one
/// runs or cancels the tasks that are left.
#[test]
fn each_simulation_of_a_thread_has_its_own_time() {
    for outer_ends_first in [false, true] {
        let mut outer = Sim::new(7);
        outer.run_for(HOUR);
        assert_time(HOUR, &outer);
        let mut inner = Sim::new(8);
        assert_time(Duration::ZERO, &inner);
        inner.node("n1", || async {
            loop {
                Timer::after(SECOND).await;
            }
        });
        inner.run_for(3 * HOUR);
        assert_time(3 * HOUR, &inner);
        outer.run_for(HOUR);
        assert_time(3 * HOUR, &inner);
        inner.network().crash("n1");
        if outer_ends_first {
            drop(outer);
            assert_time(3 * HOUR, &inner);
            drop(inner);
        } else {
            drop(inner);
            assert_time(2 * HOUR, &outer);
            drop(outer);
        }
        let begin = Instant::now();
        thread::sleep(Duration::from_millis(2));
        assert!(begin.elapsed() >= Duration::from_millis(2), "the thread is in no simulation any more");
    }
}

/// A rule of the network is called between polls, when the clock has leapt.
#[test]
fn a_rule_sees_the_virtual_time() {
    let mut sim = Sim::new(7);
    sim.node("server", || async {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let _accepted = listener.accept().await;
    });
    let begin = Instant::now();
    sim.network().add_rule(move |_packet| {
        assert_eq!(Instant::now(), clock::now());
        if begin.elapsed() < 5 * SECOND { Verdict::Drop } else { Verdict::Pass }
    });
    sim.block_on(async { TcpStream::connect("server:80").await.unwrap() });
    assert!(begin.elapsed() > 5 * SECOND);
}

#[test]
fn a_panic_leaves_the_clocks_of_the_test() {
    let mut sim = Sim::new(7);
    sim.node("late", || async {
        let (tell, told) = async_channel::bounded(1);
        spawn(async move { told.recv().await }).detach();
        Timer::after(SECOND).await;
        // A wake from outside ends the simulation after this poll.
        thread::spawn(move || tell.try_send(1)).join().unwrap().unwrap();
    });
    let network = sim.network();
    network.set_wall_clock("late", network.wall_clock("late") - HOUR);
    let pending = catch_unwind(AssertUnwindSafe(|| sim.block_on(std::future::pending::<()>())));
    assert!(pending.is_err());
    assert_time(SECOND, &sim);
}

/// The destructors of tasks that are left belong to the simulation.
#[test]
fn destructors_see_the_virtual_time() {
    struct Sees(Arc<Mutex<Option<Duration>>>, Instant);
    impl Drop for Sees {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = Some(self.1.elapsed());
        }
    }
    let (mut sim, seen) = (Sim::new(7), Arc::new(Mutex::new(None)));
    let sees = Sees(seen.clone(), Instant::now());
    sim.spawn(async move {
        let _sees = sees;
        std::future::pending::<()>().await;
    })
    .detach();
    sim.run_for(HOUR);
    drop(sim);
    assert_eq!(*seen.lock().unwrap(), Some(HOUR));
}

/// Calls `test` in a task of a simulation: a young one, and one that is older than the time since the machine
/// was started. Hangs if it does not return.
fn within(what: &str, test: impl Fn() + Copy + Send + 'static) {
    for age in [Duration::ZERO, 1_000_000 * HOUR] {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut sim = Sim::new(7);
            sim.run_for(age);
            sim.block_on(async move { test() });
            tell.send(())
        });
        assert!(told.recv().is_ok(), "{what} fails after {age:?}");
    }
}

/// A runtime that a task makes has its own threads, and the clocks of the system. Fails if a wait for them
/// has a limit by a clock that stands.
#[test]
fn a_runtime_inside_has_the_clocks_of_the_system() {
    let sleeps = || async {
        let begin = Instant::now();
        Timer::at(begin + Duration::from_millis(10)).await;
        assert!((Duration::from_millis(10)..HOUR).contains(&begin.elapsed()));
    };
    within("a current-thread runtime", move || {
        let before = Instant::now();
        Runtime::builder().current_thread().build().unwrap().block_on(sleeps());
        assert_eq!(before.elapsed(), Duration::ZERO);
    });
    within("a runtime with workers", move || {
        Runtime::builder().threads(1).build().unwrap().block_on(sleeps())
    });
    within("a shutdown", || {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        let (begins, begun) = mpsc::channel();
        let stuck = runtime.spawn(async move {
            begins.send(()).unwrap();
            loop {
                thread::park();
            }
        });
        stuck.detach();
        begun.recv().unwrap();
        assert!(runtime.shutdown(Duration::from_millis(50)).is_err());
    });
    within("a simulation in it", || {
        Runtime::builder().current_thread().build().unwrap().block_on(async {
            let mut sim = Sim::new(8);
            sim.run_for(HOUR);
            assert_time(HOUR, &sim);
        });
    });
}

/// A simulation that is not dropped in the reverse order, in the `block_on` of a runtime beside it.
#[test]
fn a_simulation_that_is_run_by_another_runtime_has_its_own_clocks() {
    let mut sim = Sim::new(7);
    let runtime = Runtime::builder().current_thread().build().unwrap();
    runtime.block_on(async {
        let seen = sim.block_on(async { (Instant::now(), clock::now()) });
        assert_eq!(seen.0, seen.1);
        drop(sim);
        let next = Sim::new(8);
        assert_time(Duration::ZERO, &next);
    });
}

#[test]
fn each_node_has_a_wall_clock() {
    let mut sim = Sim::new(7);
    let network = sim.network();
    let read = Arc::new(Mutex::new(HashMap::new()));
    for node in ["early", "late"] {
        let reads = read.clone();
        sim.node(node, move || {
            let reads = reads.clone();
            async move {
                loop {
                    let begin = Instant::now();
                    Timer::after(SECOND).await;
                    assert_eq!(begin.elapsed(), SECOND, "no `Instant` follows the wall clock");
                    reads.lock().unwrap().insert(node, SystemTime::now());
                }
            }
        });
    }
    let right = network.wall_clock("test");
    network.set_wall_clock("early", right + HOUR);
    network.set_wall_clock("late", right - SECOND / 200);
    assert_eq!((SystemTime::now(), network.wall_clock("test")), (right, right), "this is the node `test`");
    sim.run_for(3 * SECOND / 2);
    let of = |node| read.lock().unwrap()[node];
    assert_eq!((of("early"), of("late")), (right + HOUR + SECOND, right + SECOND - SECOND / 200));

    // Back by a day, and through a crash.
    let (now, before) = (SystemTime::now(), network.wall_clock("test") - 24 * HOUR);
    assert_eq!(now, right + 3 * SECOND / 2);
    network.set_wall_clock("early", before);
    network.crash("early");
    network.restart("early");
    sim.run_for(3 * SECOND / 2);
    assert_eq!(of("early"), before + SECOND);

    network.set_wall_clock("test", right);
    assert_eq!(SystemTime::now(), right);
}

/// The program of a node, called again by a restart, and a task that sets the clock of its own node.
#[test]
fn a_node_sees_its_wall_clock_wherever_its_code_runs() {
    let mut sim = Sim::new(7);
    let network = sim.network();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (sees, sets) = (seen.clone(), network.clone());
    let right = network.wall_clock("test");
    sim.node("n1", move || {
        sees.lock().unwrap().push(SystemTime::now());
        let (sees, sets) = (sees.clone(), sets.clone());
        async move {
            sets.set_wall_clock("n1", right + HOUR);
            sees.lock().unwrap().push(SystemTime::now());
        }
    });
    sim.run_for(Duration::from_nanos(1));
    network.crash("n1");
    network.restart("n1");
    let later = right + HOUR + Duration::from_nanos(1);
    assert_eq!(*seen.lock().unwrap(), [right, right + HOUR, later]);
    assert_eq!(SystemTime::now(), right + Duration::from_nanos(1));
}

/// A task may poll one of another node, in an executor that both use.
#[test]
fn a_node_sees_its_wall_clock_after_a_poll_of_another_one() {
    let mut sim = Sim::new(7);
    let (executor, network) = (Arc::new(Executor::new()), sim.network());
    let (spawner, right) = (executor.clone(), network.wall_clock("test"));
    let polled = sim.client("early", async move { spawner.spawn(async { SystemTime::now() }).await });
    network.set_wall_clock("early", right + HOUR);
    let polls = sim.client("on time", async move {
        Timer::after(SECOND).await;
        let mut runs = pin!(executor.run(std::future::pending::<()>()));
        poll_fn(|cx| {
            assert!(runs.as_mut().poll(cx).is_pending());
            Poll::Ready(SystemTime::now())
        })
        .await
    });
    assert_eq!(sim.block_on(polls), right + SECOND);
    assert_eq!(sim.block_on(polled), right + HOUR + SECOND);
}

#[test]
fn a_wall_clock_before_1970_is_an_error() {
    let sim = Sim::new(7);
    let past = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    let set = catch_unwind(AssertUnwindSafe(|| sim.network().set_wall_clock("test", past)));
    let text: Box<dyn Any + Send> = set.unwrap_err();
    assert!(text.downcast_ref::<String>().unwrap().starts_with("a wall clock cannot show"));
}

/// A thread is still outside of the simulation.
#[test]
fn a_thread_that_wakes_a_task_is_found() {
    let result = catch_unwind(|| {
        check(7, |sim| {
            sim.block_on(async {
                let (tell, told) = async_channel::bounded(1);
                thread::spawn(move || tell.try_send(1));
                told.recv().await.unwrap();
            });
        });
    });
    let text = result.unwrap_err().downcast_ref::<String>().unwrap().clone();
    assert!(text.contains("has woken") && text.contains("from outside of the simulation"), "{text}");
}
