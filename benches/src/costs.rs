//! The costs that a simulation needs, and the real figures that it is compared with: `costs`, for
//! `benches/simulate`.
//!
//! Prints a line for each cost, `NAME NANOS`, and one for each run of the real server on the first one or two
//! cores: `real CORES WORKERS HANDLER_MICROS REQUESTS_PER_SECOND CPU_NANOS CLIENT_NANOS`. Every figure is the
//! best of several tries, because disturbances only make a try slower.

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::thread::sched_setaffinity;

use crate::driver::division;
use crate::driver::plan::Plan;
use crate::driver::rig::{Run, measure};
use crate::handler::{self, RESPONSE};
use crate::load;

/// Tries for each figure.
const TRIES: usize = 7;
/// Operations in a try.
const MANY: u32 = 20_000;
/// Operations in a try that sleeps.
const FEW: u32 = 2_000;

/// The hidden subcommand.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // An error here, and not a measurement of two threads on one core.
    run_on(&[1])?;
    run_on(&[0])?;
    let word = AtomicU64::new(0);
    print("access", best(|| per_call(MANY, || _ = black_box(&word).load(Ordering::Relaxed))));
    print("locked", best(|| per_call(MANY, || _ = black_box(&word).fetch_add(1, Ordering::SeqCst))));
    print("pause", best(|| per_call(MANY, spin_loop)));
    print("clock", best(|| per_call(MANY, || _ = black_box(Instant::now()))));
    let offer = best(|| per_call(MANY, thread::yield_now));
    print("offer", offer);
    let switch = best(switch).saturating_sub(offer);
    print("switch", switch);
    print("transfer", best(transfer));
    let (mut wake, mut latency) = (u64::MAX, u64::MAX);
    for _ in 0..TRIES {
        let tried = wakes();
        (wake, latency) = (wake.min(tried.0), latency.min(tried.1));
    }
    print("wake", wake);
    print("latency", latency);
    let half = best(on_one_core).saturating_sub(switch) / 2;
    print("wake-busy", half);
    print("sleep", half);
    poller()?;
    sockets()?;
    for cores in [1, 2] {
        real(cores)?;
    }
    Ok(())
}

fn print(name: &str, nanos: u64) {
    println!("{name} {nanos}");
}

/// Returns the least result of several tries.
fn best(mut measure: impl FnMut() -> u64) -> u64 {
    (0..TRIES).map(|_| measure()).min().unwrap_or(0)
}

/// Returns the nanoseconds of one call, of so many.
fn per_call(calls: u32, mut call: impl FnMut()) -> u64 {
    let begin = Instant::now();
    (0..calls).for_each(|_| call());
    begin.elapsed().as_nanos() as u64 / u64::from(calls)
}

/// Has the current thread, and what it starts, run on these cores only.
fn run_on(cores: &[usize]) -> io::Result<()> {
    Ok(sched_setaffinity(None, &division::set_of(cores))?)
}

/// Returns the time from one thread that yields to the next one on the same core.
fn switch() -> u64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        // Two switches for each call.
        let nanos = per_call(MANY, thread::yield_now) / 2;
        done.store(true, Ordering::Relaxed);
        nanos
    })
}

/// Returns the time in which a line gets from one core to another.
fn transfer() -> u64 {
    let turn = AtomicU64::new(0);
    let play = |own: u64| {
        for round in 0..u64::from(MANY) {
            while turn.load(Ordering::Acquire) != 2 * round + own {}
            turn.fetch_add(1, Ordering::AcqRel);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = run_on(&[1]);
            play(1);
        });
        let begin = Instant::now();
        play(0);
        // A round is four transfers: each thread gets the line to see the turn, and to end it.
        begin.elapsed().as_nanos() as u64 / u64::from(MANY) / 4
    })
}

/// Returns the median time of a call that wakes a thread on an idle core, and the median time from there to
/// the woken thread.
fn wakes() -> (u64, u64) {
    let epoch = Instant::now();
    let now = || epoch.elapsed().as_nanos() as u64;
    let [called, awake] = [(); 2].map(|()| AtomicU64::new(0));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let _ = run_on(&[1]);
            for round in 1..=u64::from(FEW) {
                while called.load(Ordering::Acquire) != round {
                    thread::park();
                }
                awake.store(now(), Ordering::Release);
            }
        });
        let (mut calls, mut latencies) = (Vec::new(), Vec::new());
        for round in 1..=u64::from(FEW) {
            // Long enough for the sleeper to be asleep, and for its core to be idle.
            let begin = now();
            while now() < begin + 30_000 {}
            awake.store(0, Ordering::Relaxed);
            called.store(round, Ordering::Release);
            let before = now();
            sleeper.thread().unpark();
            let after = now();
            while awake.load(Ordering::Acquire) == 0 {}
            calls.push(after - before);
            latencies.push(awake.load(Ordering::Relaxed).saturating_sub(after));
        }
        (median(&mut calls), median(&mut latencies))
    })
}

/// Returns the time in which a thread wakes another one on the same core, falls asleep, and the other one
/// runs.
fn on_one_core() -> u64 {
    let turn = &AtomicU64::new(0);
    let play = &|own: u64, other: &thread::Thread| {
        for round in 0..u64::from(FEW) {
            while turn.load(Ordering::Acquire) != 2 * round + own {
                thread::park();
            }
            turn.fetch_add(1, Ordering::AcqRel);
            other.unpark();
        }
    };
    thread::scope(|scope| {
        let first = thread::current();
        let second = scope.spawn(move || play(1, &first));
        per_call(1, || play(0, second.thread())) / u64::from(2 * FEW)
    })
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Prints the cost of asking a poller, for the call and for each event, and of interrupting it.
fn poller() -> io::Result<()> {
    const SOURCES: usize = 128;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut events = Vec::with_capacity(SOURCES);
    let mut wait = || {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map(drop)
    };
    let empty = best(|| per_call(FEW, || _ = wait()));
    let sources: Vec<_> =
        (0..SOURCES).map(|_| eventfd(1, EventfdFlags::NONBLOCK)).collect::<Result<_, _>>()?;
    for source in &sources {
        epoll::add(&epoll, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    let full = best(|| per_call(FEW, || _ = wait()));
    print("wait", empty);
    print("event", full.saturating_sub(empty) / SOURCES as u64);
    let one = 1_u64.to_ne_bytes();
    print("interrupt", best(|| per_call(FEW, || _ = rustix::io::write(&sources[0], &one))));
    Ok(())
}

/// Prints the cost of reading and of writing an answer. Over loopback the writer does the work of the network
/// on both sides. The two ends answer each other, so their acknowledgements need no packets.
fn sockets() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let mut far = listener.accept()?.0;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
    }
    let (mut read, mut write) = (u64::MAX, u64::MAX);
    for _ in 0..TRIES {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for _ in 0..FEW {
            let begin = Instant::now();
            near.write_all(RESPONSE)?;
            let written = Instant::now();
            far.read_exact(&mut [0; RESPONSE.len()])?;
            reads.push(written.elapsed().as_nanos() as u64);
            writes.push((written - begin).as_nanos() as u64);
            std::mem::swap(&mut near, &mut far);
        }
        (read, write) = (read.min(median(&mut reads)), write.min(median(&mut writes)));
    }
    print("read", read);
    print("write", write);
    Ok(())
}

/// Prints the figures of the real server with up to so many workers. The server shares the first `cores`
/// cores with one thread of the load.
fn real(cores: usize) -> Result<(), Box<dyn Error>> {
    run_on(&[0, 1][..cores])?;
    handler::set_steps_per_micro(handler::calibrate(Duration::from_secs(1)));
    for workers in 1..=cores {
        for handler in [0, 5, 20, 100] {
            // Both sides inherit the cores of this process.
            let plan = Plan {
                warm: Duration::from_millis(100),
                window: Duration::from_millis(400),
                threads: workers,
                ..Plan::full().together()
            };
            let load = load::Plan { threads: 1, ..plan.load(&format!("/w{handler}"), 64) };
            let runs = (0..TRIES).map(|_| measure("paceline", &plan, &load, None));
            let runs = runs.collect::<io::Result<Vec<_>>>()?;
            let fastest = |a: &&Run, b: &&Run| a.requests_per_second.total_cmp(&b.requests_per_second);
            let run = runs.iter().max_by(fastest).ok_or("there is no try")?;
            println!(
                "real {cores} {workers} {handler} {:.0} {:.0} {:.0}",
                run.requests_per_second,
                run.cpu_micros * 1e3,
                run.load / 100.0 / run.requests_per_second * 1e9
            );
        }
    }
    Ok(())
}
