//! The parts that all actions share: dice, the runtimes that stay, `block_on`s of all libraries, and events
//! to wait for.

use std::fmt;
use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, future};
use paceline::{Async, Metrics, Promotion, Runtime, Timer, Tuning, block_on, spawn};

use crate::server::Server;

pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// xorshift: reproducible as far as threads allow.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Makes neighbouring seeds differ.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    /// Returns dice for another action.
    pub fn fork(&mut self) -> Self {
        Self::new(self.roll(u64::MAX))
    }

    pub fn micros(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.roll(below))
    }

    pub fn coin(&mut self) -> bool {
        self.roll(2) == 0
    }
}

/// A runtime that stays until the end, and its server.
pub struct Home {
    pub name: &'static str,
    threads: usize,
    pub runtime: Arc<Runtime>,
    pub server: Arc<Server>,
}

/// All runtimes that stay. The default instance exists, too.
#[derive(Clone)]
pub struct Stage(pub Arc<[Home]>);

impl Stage {
    pub fn build() -> Self {
        let home = |name, threads, promotion, portable, blocking| {
            let tuning = Tuning::default().promotion(promotion).portable(portable);
            let builder = Runtime::builder().threads(threads).tuning(tuning);
            let builder = builder.thread_name(name).blocking_threads(blocking);
            let runtime = Arc::new(builder.build().unwrap());
            let server = Arc::new(Server::start(&runtime));
            Home { name, threads, runtime, server }
        };
        Self(Arc::new([
            home("two", 2, Promotion::Adaptive, false, 500),
            home("four", 4, Promotion::Eager, false, 4),
            home("one", 1, Promotion::Adaptive, false, 1),
            home("portable", 2, Promotion::Adaptive, true, 2),
            home("eager", 1, Promotion::Eager, true, 500),
        ]))
    }

    /// Returns two of them for an action, and perhaps a third one with a server.
    pub fn scene(&self, dice: &mut Dice) -> Scene {
        let homes = self.0.len() as u64;
        let (first, second) = (dice.roll(homes), 1 + dice.roll(homes - 1));
        let runtime = self.0[first as usize].runtime.clone();
        let other = self.0[((first + second) % homes) as usize].runtime.clone();
        Scene { runtime, other, server: self.0[dice.roll(homes) as usize].server.clone() }
    }

    /// Returns the number of permanent threads: workers, and a deputy each.
    pub fn threads(&self) -> usize {
        self.0.iter().map(|home| home.threads + 1).sum()
    }

    /// Returns the number of answered requests.
    pub fn answered(&self) -> u64 {
        self.0.iter().map(|home| home.server.answered()).sum()
    }

    /// Returns activity that remains although all actions have ended.
    pub fn is_busy(&self) -> Option<String> {
        let busy = self.metrics().zip(0..).find_map(|(metrics, number)| {
            let Metrics { sources, timers, tasks, .. } = metrics;
            // Each server keeps its sources and tasks; the default instance has no server.
            let stay = if number < self.0.len() { 2 } else { 0 };
            let idle = sources == stay && timers == 0 && tasks.is_none_or(|tasks| tasks == stay);
            let blocking = (metrics.blocking_threads, metrics.blocking_queued, metrics.blocking_lost);
            (!idle || blocking != (0, 0, 0)).then(|| format!("runtime {number}: {metrics}"))
        });
        let open = self.0.iter().find(|home| home.server.open() > 0);
        busy.or(open.map(|home| format!("connections of {}", home.name)))
    }

    pub fn metrics(&self) -> impl Iterator<Item = Metrics> {
        self.0.iter().map(|home| home.runtime.metrics()).chain([paceline::metrics()])
    }

    /// Returns a report for the search for a hang.
    pub fn report(&self) -> String {
        let home =
            |Home { name, runtime, .. }: &Home| format!("{name}: {runtime:?}\n{}\n", runtime.metrics());
        self.0.iter().map(home).chain([format!("the default one:\n{}\n", paceline::metrics())]).collect()
    }
}

/// The runtimes of an action.
#[derive(Clone)]
pub struct Scene {
    pub runtime: Arc<Runtime>,
    pub other: Arc<Runtime>,
    pub server: Arc<Server>,
}

impl Scene {
    /// Blocks on a future on this thread, in one of several ways.
    pub fn block_on<T>(&self, dice: &mut Dice, future: impl Future<Output = T>) -> T {
        match dice.roll(6) {
            0 | 1 => block_on(future),
            2 => self.runtime.block_on(future),
            3 => self.other.block_on(future),
            way => foreign(way + dice.roll(2), future),
        }
    }

    /// Runs a future somewhere else, from here or from another thread.
    pub fn run_elsewhere(&self, dice: &mut Dice, future: impl Future<Output = ()> + Send + 'static) {
        let (runtime, other, which) = (self.runtime.clone(), self.other.clone(), dice.roll(3));
        match dice.roll(8) {
            0 | 1 => spawn(future).detach(),
            2 => runtime.spawn(future).detach(),
            3 => other.spawn(future).detach(),
            4 => _ = thread::spawn(move || runtime.spawn(future).detach()),
            5 => _ = thread::spawn(move || foreign(which, future)),
            6 => _ = thread::spawn(move || block_on(future)),
            _ => _ = thread::spawn(move || other.block_on(future)),
        }
    }
}

/// Another library's `block_on`, one of three.
pub fn foreign<T>(which: u64, future: impl Future<Output = T>) -> T {
    match which % 3 {
        0 => future::block_on(future),
        // `futures_executor::block_on` does not nest.
        1 if futures_executor::enter().is_ok() => futures_executor::block_on(future),
        _ => pollster::block_on(future),
    }
}

/// Sends a byte soon; the other end may be closed.
pub fn send_soon(dice: &mut Dice, mut far: UnixStream) {
    let wait = dice.micros(1_500);
    match dice.roll(3) {
        0 => _ = far.write_all(b"x"),
        1 => {
            thread::spawn(move || {
                thread::sleep(wait);
                _ = far.write_all(b"x");
            });
        }
        _ => spawn(async move {
            Timer::after(wait).await;
            _ = far.write_all(b"x");
        })
        .detach(),
    }
}

/// Returns a socket that has a byte to read soon.
pub fn socket_soon(dice: &mut Dice) -> UnixStream {
    let (near, far) = UnixStream::pair().unwrap();
    send_soon(dice, far);
    near
}

pub async fn read_byte(stream: &mut Async<UnixStream>) {
    let mut byte = [0];
    stream.read_exact(&mut byte).await.unwrap();
    assert_eq!(&byte, b"x");
}

pub async fn some_timer(dice: &mut Dice) {
    let (start, length) = (Instant::now(), dice.micros(2_000));
    Timer::after(length).await;
    assert!(start.elapsed() >= length, "a timer was early");
}

pub async fn some_socket(dice: &mut Dice) {
    read_byte(&mut Async::new(socket_soon(dice)).unwrap()).await;
}

pub async fn some_task(dice: &mut Dice) {
    let (n, yields) = (dice.roll(1_000), dice.coin());
    let task = spawn(async move {
        if yields {
            future::yield_now().await;
        }
        n + 1
    });
    assert_eq!(task.await, n + 1);
}

/// Waits for one of several events, or for all of them.
pub async fn some_wait(dice: &mut Dice) {
    match dice.roll(5) {
        0 => some_timer(dice).await,
        1 => some_socket(dice).await,
        2 => some_task(dice).await,
        3 => future::yield_now().await,
        _ => {
            let (mut dice2, mut dice3) = (dice.fork(), dice.fork());
            let two = future::zip(some_timer(dice), some_socket(&mut dice2));
            future::zip(two, some_task(&mut dice3)).await;
        }
    }
}

/// Counts events, each of which must happen exactly once.
#[derive(Clone)]
pub struct Tally(Arc<[AtomicUsize]>);

impl Tally {
    pub fn new(size: usize) -> Self {
        Self((0..size).map(|_| AtomicUsize::new(0)).collect())
    }

    pub fn count(&self, number: usize) {
        self.0[number].fetch_add(1, SeqCst);
    }

    pub fn is_complete(&self) -> bool {
        self.0.iter().all(|count| count.load(SeqCst) > 0)
    }

    pub fn assert_each_once(&self) {
        assert!(self.0.iter().all(|count| count.load(SeqCst) == 1), "not once each: {self:?}");
    }

    /// Waits without a notification; the watchdog ensures that this ends.
    pub fn wait_until_complete(&self) {
        while !self.is_complete() {
            thread::sleep(Duration::from_micros(200));
        }
        self.assert_each_once();
    }

    /// Counts when it is dropped.
    pub fn guard(&self, number: usize) -> Guard {
        Guard(self.clone(), number)
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub struct Guard(Tally, usize);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.count(self.1);
    }
}

struct Does<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Returns a waker that calls a function.
pub fn waker_that(does: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Does(does)))
}
