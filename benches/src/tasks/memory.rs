//! How much memory does a task or a connection hold while it waits?
//!
//! Hypothesis: a task is one allocation of header, scheduler state and future; a connection adds the source's
//! entry in the reactor. Each figure comes from a process of its own, so that no caches are warm.
//!
//! "live" counts the bytes that the program has allocated and not freed; "rss" is the growth of the process,
//! which adds the allocator's rounding. Neither contains the kernel's socket memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_lite::{AsyncRead, AsyncReadExt};

use super::rivals::Rival;
use crate::descriptors;
use crate::servers::listen;

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The system allocator with a count of live bytes, switched on only for the memory figures.
#[derive(Debug)]
pub struct Counting;

fn count(change: isize) {
    if COUNTING.load(Ordering::Relaxed) {
        LIVE.fetch_add(change, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to `System` unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the promises of `alloc`, which `System` needs.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes per task or connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) live: f64,
    pub(super) rss: f64,
}

struct Mark {
    live: isize,
    rss: isize,
}

fn mark() -> Mark {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    let kib: isize = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    Mark { live: LIVE.load(Ordering::Relaxed), rss: kib * 1024 }
}

fn grown(before: &Mark, count: usize) -> Bytes {
    let after = mark();
    let each = |bytes: isize| bytes as f64 / count as f64;
    Bytes { live: each(after.live - before.live), rss: each(after.rss - before.rss) }
}

/// The cases; a child process runs one of them for one rival.
pub(super) const CASES: &[(&str, &str)] = &[
    ("mem-task", "bytes per spawned empty task that waits forever"),
    ("mem-connection", "bytes per idle loopback connection with a task reading from it"),
];

const TASKS: usize = 100_000;
const CONNECTIONS: usize = 5_000;
/// Connections before the count starts, because tables grow with the first ones.
const FIRST_CONNECTIONS: usize = 100;

/// The child's part: prints the figures for the parent.
pub(super) fn child<R: Rival>(case: &str) {
    // The runtime itself, its threads and lazily initialised statics do not count.
    R::block_on_worker(async {
        for number in 0..1_000 {
            assert_eq!(R::spawn(async move { number }).await, number);
        }
    });
    COUNTING.store(true, Ordering::Relaxed);
    let bytes = match case {
        "mem-task" => tasks::<R>(TASKS),
        _ => connections::<R>(CONNECTIONS),
    };
    println!("{} {}", bytes.live, bytes.rss);
}

/// The parent's part: gets one figure from a new process.
pub(super) fn measure(case: &str, rival: &str) -> io::Result<Bytes> {
    if case == "mem-connection" {
        // Both ends of each connection are in this process.
        descriptors::allow(2 * (FIRST_CONNECTIONS + CONNECTIONS))?;
    }
    let output = Command::new(std::env::current_exe()?).args(["--child", case, rival]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut figures = text.split_whitespace().filter_map(|word| word.parse().ok());
    match (figures.next(), figures.next()) {
        (Some(live), Some(rss)) => Ok(Bytes { live, rss }),
        _ => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// How many tasks or connections of this (child) process have been polled for the first time.
static ARRIVED: AtomicUsize = AtomicUsize::new(0);

pub(super) fn arrived() {
    ARRIVED.fetch_add(1, Ordering::Release);
}

fn wait_for(count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while ARRIVED.load(Ordering::Acquire) < count {
        assert!(Instant::now() < deadline, "only {} of {count} arrived", ARRIVED.load(Ordering::Acquire));
        std::thread::sleep(Duration::from_millis(1));
    }
    // Let the workers go to sleep.
    std::thread::sleep(Duration::from_millis(200));
}

/// Each task is an async block with only the wait in it: its future is one byte.
fn tasks<R: Rival>(count: usize) -> Bytes {
    let mut joins = Vec::with_capacity(count);
    let before = mark();
    for _ in 0..count {
        joins.push(R::spawn(async {
            arrived();
            pending::<()>().await;
        }));
    }
    wait_for(count);
    let bytes = grown(&before, count);
    joins.into_iter().for_each(R::cancel);
    bytes
}

/// Reads from a connection, for streams with the traits of futures-io.
pub(super) async fn hold(mut stream: impl AsyncRead + Unpin) {
    arrived();
    let mut byte = [0];
    while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {}
}

/// The clients are plain sockets of the same process, which hold no memory outside of the kernel.
fn connections<R: Rival>(count: usize) -> Bytes {
    const FIRST: usize = FIRST_CONNECTIONS;
    let listener = listen(0).expect("a free port");
    let address = listener.local_addr().expect("a bound listener");
    R::detach(R::spawn(R::accept_and_hold(listener)));
    let mut clients = Vec::with_capacity(count + FIRST);
    connect(&mut clients, address, FIRST);
    wait_for(FIRST);
    let before = mark();
    connect(&mut clients, address, count);
    wait_for(FIRST + count);
    grown(&before, count)
}

fn connect(clients: &mut Vec<TcpStream>, address: SocketAddr, count: usize) {
    for _ in 0..count {
        clients.push(TcpStream::connect(address).expect("the server accepts"));
    }
}
