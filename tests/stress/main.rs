//! Minutes of everything at once, with watchdogs: an answer to a ping comes within a second, always (L7: sources registered
//! and nobody leads; async-io hung like that after hours), and whatever is begun ends within ten.
//!
//! `cargo test --release --test stress -- --ignored`, for `PACELINE_STRESS_SECS` seconds (120 without it), half of them
//! with epoll and half with the portable interface. The seed is printed; `PACELINE_STRESS_SEED` sets it. What hangs or
//! fails says its kind: `PACELINE_STRESS_ONLY=kind` does nothing else. `PACELINE_STRESS_STAY=1` leaves a process that hangs
//! to a debugger.
//!
//! | file | what it does |
//! |---|---|
//! | `scene` | what all share: dice, the two runtimes, `block_on`s of all makes, waits |
//! | `ledger` | what has begun and not ended yet; the watchdog |
//! | `leftovers` | threads, descriptors, memory; the panic hook |
//! | `gentle` | well-behaved tasks |
//! | `blocking` | tasks that block: for one another, in nested `block_on`s, in another runtime's |
//! | `executors` | executors run on two threads, by all who can |
//! | `endings` | second runtimes that are shut down and dropped while others wait for what they have |
//! | `panics` | tasks, root futures and wakers that panic |
#![cfg(unix)]
#![allow(unreachable_pub)]

mod blocking;
mod endings;
mod executors;
mod gentle;
mod ledger;
mod leftovers;
mod panics;
mod scene;

use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Promotion, Runtime, Timer, block_on, spawn};

use ledger::{Ledger, Watchdog};
use leftovers::Census;
use scene::{Boxed, Dice, Scene, foreign};

/// The answer to a ping takes no longer, whatever goes on.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Actions that go on at the same time, at most.
const BUSY: usize = 64;

/// One kind of action.
struct Kind {
    name: &'static str,
    begin: fn(Scene, Dice) -> Boxed<()>,
}

macro_rules! kinds {
    ($($module:ident::$name:ident),* $(,)?) => {
        [$(Kind { name: stringify!($name), begin: |scene, dice| Box::pin($module::$name(scene, dice)) }),*]
    };
}

/// The mix: all of them run, each as often as any other.
static KINDS: [Kind; 18] = kinds![
    gentle::fan_out,
    gentle::pass_around,
    gentle::timers,
    gentle::talk,
    gentle::cancel,
    gentle::block,
    blocking::tasks_wait_for_tasks,
    blocking::foreign_block_ons,
    blocking::nested_block_ons,
    blocking::across_runtimes,
    executors::on_two_threads,
    executors::local,
    endings::second_runtime,
    endings::outlived,
    panics::panicking_tasks,
    panics::panicking_roots,
    panics::panicking_wakers,
    panics::panicking_executors,
];

/// Where an action runs.
const PLACES: [&str; 8] = ["task", "task", "task", "root", "stranger", "alone", "default task", "other root"];

fn begin(place: usize, scene: &Scene, which: u64, action: impl Future<Output = ()> + Send + 'static) {
    let (runtime, other) = (scene.runtime.clone(), scene.other.clone());
    match place {
        0..3 => runtime.spawn(action).detach(),
        3 => _ = thread::spawn(move || runtime.block_on(action)),
        4 => _ = thread::spawn(move || foreign(which, action)),
        5 => _ = thread::spawn(move || block_on(action)),
        6 => spawn(action).detach(),
        _ => _ = thread::spawn(move || other.block_on(action)),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
#[ignore = "takes minutes: cargo test --release --test stress -- --ignored"]
fn everything_at_once() {
    leftovers::be_quiet_about_what_is_on_purpose();
    let secs = number_from("PACELINE_STRESS_SECS").unwrap_or(120);
    let seed = number_from("PACELINE_STRESS_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
    println!("PACELINE_STRESS_SEED={seed}");
    let setups = [
        (2, Promotion::Adaptive, false),
        (2, Promotion::Adaptive, true),
        (4, Promotion::Eager, false),
        (1, Promotion::Eager, true),
        (1, Promotion::Adaptive, false),
        (4, Promotion::Adaptive, true),
    ];
    // The default instance stays, with its workers.
    block_on(spawn(Timer::after(Duration::from_millis(1))));
    thread::sleep(Duration::from_millis(100));
    let before = Census::take();
    let mut first = None;
    for (number, (threads, promotion, portable)) in setups.into_iter().enumerate() {
        println!("{threads} threads, {promotion:?}, portable: {portable}");
        let build = |threads| {
            let builder = Runtime::builder().threads(threads).promotion(promotion).portable(portable);
            Arc::new(builder.build().unwrap())
        };
        let length = Duration::from_millis(1000 * secs / setups.len() as u64);
        stress(build(threads), build(1), length, Dice::new(seed + number as u64));
        let after = before.wait_until_back();
        println!("left: {after}\n");
        after.assert_no_gross_growth(*first.get_or_insert(after));
    }
}

fn stress(runtime: Arc<Runtime>, other: Arc<Runtime>, length: Duration, mut dice: Dice) {
    let only = env::var("PACELINE_STRESS_ONLY").ok();
    let mix: Vec<_> =
        KINDS.iter().filter(|kind| only.as_ref().is_none_or(|only| kind.name == only)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let scene = Scene { server: echo_server(&runtime), runtime, other };
    let ledger = Arc::new(Ledger::default());
    let watchdog = Watchdog::start(ledger.clone(), &scene);
    let pulse = heartbeat(&scene.runtime, stop.clone());
    let storm = storm(scene.runtime.clone(), stop.clone(), dice.fork());
    let until = Instant::now() + length;
    while Instant::now() < until {
        assert!(!pulse.is_finished(), "the heartbeat has stopped:\n{}", scene.metrics());
        if ledger.open() >= BUSY {
            thread::sleep(Duration::from_micros(200));
            continue;
        }
        let kind = mix[dice.roll(mix.len() as u64) as usize];
        let (place, which) = (dice.roll(PLACES.len() as u64) as usize, dice.roll(3));
        let dice = dice.fork();
        let ticket = ledger.begin(kind.name, PLACES[place], &dice);
        let action = (kind.begin)(scene.clone(), dice);
        begin(place, &scene, which, async move {
            action.await;
            ticket.ends();
        });
    }
    // The watchdog sees to it that this ends.
    while ledger.open() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    stop.store(true, Relaxed);
    storm.join().expect("guests end");
    let (pings, longest) = pulse.join().expect("the heart never stopped");
    watchdog.stop();
    println!("{ledger}{pings} pings, the longest took {longest:?}\n{}", scene.runtime.metrics());
    leftovers::assert_nothing_failed();
    assert!(mix.iter().all(|kind| ledger.done(kind.name) > 0), "some kinds never ran");
    for runtime in [&scene.runtime, &scene.other] {
        runtime.shutdown(Duration::from_secs(10)).expect("nothing blocks for ever");
    }
}

fn echo_server(runtime: &Runtime) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async move {
        let listener = Async::new(listener).unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let echo = async move {
                let mut buf = [0; 1024];
                while let Ok(n @ 1..) = stream.read(&mut buf).await {
                    if stream.write_all(&buf[..n]).await.is_err() {
                        break;
                    }
                }
            };
            spawn(echo).detach();
        }
    };
    runtime.spawn(serve).detach();
    address
}

/// Guests come and go all the time, and wait for the workers.
fn storm(runtime: Arc<Runtime>, stop: Arc<AtomicBool>, mut dice: Dice) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        while !stop.load(Relaxed) {
            let micros = dice.roll(2_000);
            runtime.block_on(async {
                let task = spawn(async move { Timer::after(Duration::from_micros(micros)).await });
                future::zip(task, Timer::after(Duration::from_micros(micros / 2))).await;
            });
        }
    })
}

/// Pings end to end until it is told to stop; the number of pings, and the longest.
fn heartbeat(runtime: &Runtime, stop: Arc<AtomicBool>) -> thread::JoinHandle<(u64, Duration)> {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(10 * HEARTBEAT)).unwrap();
    let echo = async move {
        let mut stream = Async::new(theirs).unwrap();
        let mut byte = [0];
        while let Ok(1) = stream.read(&mut byte).await {
            stream.write_all(&byte).await.unwrap();
        }
    };
    runtime.spawn(echo).detach();
    thread::spawn(move || {
        let (mut pings, mut longest) = (0, Duration::ZERO);
        while !stop.load(Relaxed) {
            let start = Instant::now();
            ours.write_all(b"x").unwrap();
            ours.read_exact(&mut [0]).expect("a ping comes back");
            let took = start.elapsed();
            assert!(took < HEARTBEAT, "ping {pings} took {took:?}");
            (pings, longest) = (pings + 1, longest.max(took));
            thread::sleep(Duration::from_micros(500));
        }
        (pings, longest)
    })
}
