//! Minutes of everything at once, with a watchdog that wants an answer to a ping within a second, always (L7: sources
//! registered and nobody leads; async-io hung like that after hours).
//!
//! `cargo test --release --test stress -- --ignored`, for `PACELINE_STRESS_SECS` seconds (120 without it), half of them
//! with epoll and half with the portable interface. The seed is printed; `PACELINE_STRESS_SEED` sets it.
#![cfg(unix)]

use std::env;
use std::future::pending;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, LocalExecutor, Promotion, Runtime, Timer, block_on, spawn};

/// The answer to a ping takes no longer, whatever goes on.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Things that go on at the same time, at most.
const BUSY: usize = 64;

/// xorshift: reproducible as far as threads are.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn number_from(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What the mix has done; all of it must grow.
#[derive(Default, Debug)]
struct Done {
    kinds: [AtomicU64; 8],
}

#[test]
#[ignore = "takes minutes: cargo test --release --test stress -- --ignored"]
fn everything_at_once() {
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
    for (number, (threads, promotion, portable)) in setups.into_iter().enumerate() {
        println!("{threads} threads, {promotion:?}, portable: {portable}");
        let builder = Runtime::builder().threads(threads).promotion(promotion).portable(portable);
        let runtime = Arc::new(builder.build().unwrap());
        let length = Duration::from_millis(1000 * secs / setups.len() as u64);
        stress(&runtime, length, Dice(seed + number as u64));
        println!("{}\n", runtime.metrics());
        runtime.shutdown(Duration::from_secs(10)).expect("nothing blocks for ever");
    }
}

fn stress(runtime: &Arc<Runtime>, length: Duration, mut dice: Dice) {
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(Done::default());
    let busy = Arc::new(AtomicUsize::new(0));
    let server = echo_server(runtime);
    let pulse = heartbeat(runtime, stop.clone());
    let storm = storm(runtime.clone(), stop.clone(), dice.clone());
    let until = Instant::now() + length;
    while Instant::now() < until {
        assert!(!pulse.is_finished(), "the heartbeat has stopped:\n{}", runtime.metrics());
        if busy.load(Relaxed) >= BUSY {
            thread::sleep(Duration::from_micros(200));
            continue;
        }
        busy.fetch_add(1, Relaxed);
        let kind = dice.roll(8);
        let (mut dice2, done, busy) = (Dice(dice.roll(u64::MAX) | 1), done.clone(), busy.clone());
        let one = async move {
            some_work(kind, &mut dice2, server).await;
            done.kinds[kind as usize].fetch_add(1, Relaxed);
            busy.fetch_sub(1, Relaxed);
        };
        runtime.spawn(one).detach();
    }
    let patience = Instant::now() + Duration::from_secs(20);
    while busy.load(Relaxed) > 0 {
        assert!(
            Instant::now() < patience,
            "{} of the mix hang: {done:?}\n{}",
            busy.load(Relaxed),
            runtime.metrics()
        );
        thread::sleep(Duration::from_millis(1));
    }
    stop.store(true, Relaxed);
    storm.join().expect("guests end");
    let (pings, longest) = pulse.join().expect("the heart never stopped");
    println!("{done:?}, {pings} pings, the longest took {longest:?}");
    assert!(done.kinds.iter().all(|count| count.load(Relaxed) > 0), "some kinds never ran: {done:?}");
}

/// One thing of the mix.
async fn some_work(kind: u64, dice: &mut Dice, server: std::net::SocketAddr) {
    match kind {
        0 => fan_out(dice.roll(20) as usize + 1).await,
        1 => pass_around(dice.roll(200)).await,
        2 => timers(dice).await,
        3 | 4 => talk(server, dice).await,
        5 => cancel(dice).await,
        6 => {
            let micros = dice.roll(500);
            // A nested `block_on`, with and without an executor of its own.
            if micros % 2 == 0 {
                block_on(async move {
                    Timer::after(Duration::from_micros(micros)).await;
                    spawn(async {}).await;
                });
            } else {
                let local = LocalExecutor::new();
                let task = local.spawn(async move { Timer::after(Duration::from_micros(micros)).await });
                block_on(local.run(task));
            }
        }
        // A task that blocks its thread.
        _ => thread::sleep(Duration::from_micros(dice.roll(5_000))),
    }
}

async fn fan_out(width: usize) {
    let tasks: Vec<_> = (0..width)
        .map(|n| {
            spawn(async move {
                future::yield_now().await;
                n
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await;
    }
    assert_eq!(sum, width * (width - 1) / 2);
}

async fn pass_around(rounds: u64) {
    async fn pass(told: Receiver<u64>, tell: Sender<u64>) {
        while let Ok(n) = told.recv().await {
            if tell.send(n).await.is_err() {
                break;
            }
        }
    }
    let (first, mut last) = bounded(1);
    for _ in 0..3 {
        let (tell, told) = bounded(1);
        spawn(pass(std::mem::replace(&mut last, told), tell)).detach();
    }
    for round in 0..rounds {
        first.send(round).await.unwrap();
        assert_eq!(last.recv().await, Ok(round));
    }
}

async fn timers(dice: &mut Dice) {
    let mut far: Vec<_> = (0..10).map(|n| Timer::after(Duration::from_secs(60 + n))).collect();
    for timer in &mut far {
        assert!(future::poll_once(timer).await.is_none());
    }
    for _ in 0..5 {
        let length = Duration::from_micros(dice.roll(3_000));
        let start = Instant::now();
        Timer::after(length).await;
        assert!(start.elapsed() >= length, "a timer was early");
    }
}

/// Opens a connection, has some bytes echoed, closes it: sometimes in the middle.
async fn talk(server: std::net::SocketAddr, dice: &mut Dice) {
    let mut stream = Async::<TcpStream>::connect(server).await.unwrap();
    for _ in 0..dice.roll(20) + 1 {
        let sent = vec![dice.roll(256) as u8; dice.roll(3_000) as usize + 1];
        let mut got = vec![0; sent.len()];
        let (mut reader, mut writer) = (&stream, &stream);
        future::try_zip(writer.write_all(&sent), reader.read_exact(&mut got)).await.unwrap();
        assert!(got == sent, "the echo is another one's");
    }
    if dice.roll(4) == 0 {
        let _ = stream.write(&[0; 100]).await;
    }
}

async fn cancel(dice: &mut Dice) {
    let (mut one, other) = Async::<UnixStream>::pair().unwrap();
    let reader = spawn(async move {
        let mut other = other;
        other.read(&mut [0; 8]).await
    });
    let never = spawn(pending::<()>());
    let timer = spawn(Timer::after(Duration::from_secs(600)));
    if dice.roll(2) == 0 {
        let _ = one.write(b"late").await;
    }
    future::yield_now().await;
    reader.cancel().await;
    timer.cancel().await;
    drop(never);
}

fn echo_server(runtime: &Runtime) -> std::net::SocketAddr {
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
