//! How much memory does a task, a connection or a timer hold while it waits, and how much is kept once a
//! hundred thousand of them are gone?
//!
//! Hypothesis: a task is one allocation of header, scheduler state and future; a connection adds the source's
//! entry in the reactor, and a timer its entry in the wheel. After a peak these tables shrink. Each figure
//! comes from a process of its own, so that no caches are warm.
//!
//! "live" counts the bytes that the program has allocated and not freed; "rss" is the growth of the process,
//! which adds the allocator's rounding, and what it does not give back. Neither contains the kernel's socket
//! memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future, pending, poll_fn};
use std::io::{self, BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::task::Poll;
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

/// Bytes per task, connection or timer.
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

/// Prints what each of `count` holds, or has left behind, for the parent.
fn report(before: &Mark, count: usize) {
    let after = mark();
    let each = |bytes: isize| bytes as f64 / count as f64;
    println!("{} {}", each(after.live - before.live), each(after.rss - before.rss));
}

/// A case; a child process runs it for one rival.
pub(super) struct MemoryCase {
    name: &'static str,
    /// The rows of the table: what each one holds, and what is kept.
    pub(super) rows: [(&'static str, &'static str); 2],
}

pub(super) const CASES: &[MemoryCase] = &[
    MemoryCase {
        name: "task",
        rows: [
            ("mem-task", "bytes per spawned empty task that waits forever"),
            ("mem-task-kept", "bytes kept per task of a peak after all have ended"),
        ],
    },
    MemoryCase {
        name: "connection",
        rows: [
            ("mem-connection", "bytes per idle loopback connection with a task reading from it"),
            ("mem-connection-kept", "bytes kept per connection of a peak after all were closed"),
        ],
    },
    MemoryCase {
        name: "timer",
        rows: [
            ("mem-timer", "bytes per armed timer in a box, many of them in one task"),
            ("mem-timer-kept", "bytes kept per timer of a peak after all were dropped"),
        ],
    },
];

/// How many tasks or timers there are at the peak; and connections, if the limit of descriptors allows.
const PEAK: usize = 100_000;
/// Connections before the count starts, because tables grow with the first ones.
const FIRST_CONNECTIONS: usize = 100;

/// The child's part: prints the figures for the parent.
pub(super) fn child<R: Rival>(case: &str) {
    // The runtime itself, its threads and lazily initialised statics do not count.
    R::block_on_worker(async {
        for number in 0..1_000 {
            assert_eq!(R::spawn(async move { number }).await, number);
        }
        R::timer(Duration::ZERO).await;
    });
    COUNTING.store(true, Ordering::Relaxed);
    match case {
        "task" => tasks::<R>(PEAK),
        "timer" => timers::<R>(PEAK),
        _ => connections::<R>(),
    }
}

/// The parent's part: gets the figures of one case from a new process, those of the peak and those after it.
pub(super) fn measure(case: &MemoryCase, rival: &str) -> io::Result<[Bytes; 2]> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--child", case.name, rival])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut orders, told) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
    let (mut clients, mut figures) = (Vec::new(), Vec::new());
    for line in BufReader::new(told).lines() {
        let line = line?;
        match line.split(' ').collect::<Vec<_>>()[..] {
            // The clients are sockets of this process: a connection takes the child one descriptor.
            ["connect", address, count] => {
                for _ in 0..count.parse().map_err(io::Error::other)? {
                    clients.push(TcpStream::connect(address)?);
                }
            }
            ["close"] => clients.clear(),
            [live, rss] => {
                let number = |word: &str| word.parse().map_err(io::Error::other);
                figures.push(Bytes { live: number(live)?, rss: number(rss)? });
            }
            _ => return Err(io::Error::other(line)),
        }
    }
    // The child lives until its figures were read.
    drop(orders.take());
    child.wait()?;
    figures.try_into().map_err(|_| io::Error::other("the child has failed"))
}

/// How many tasks or connections of this (child) process have been polled for the first time, and have ended.
static ARRIVED: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// Counts the end of a task, and takes no room in it.
pub(super) struct Presence;

impl Drop for Presence {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::Release);
    }
}

/// Counts a task, and counts its end when the result is dropped.
pub(super) fn arrived() -> Presence {
    ARRIVED.fetch_add(1, Ordering::Release);
    Presence
}

fn wait_for(counter: &AtomicUsize, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while counter.load(Ordering::Acquire) < count {
        let seen = counter.load(Ordering::Relaxed);
        assert!(Instant::now() < deadline, "only {seen} of {count} came, or ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Let the workers drop what is left, and go to sleep.
    std::thread::sleep(Duration::from_millis(300));
}

/// Each task is an async block with only the wait in it: its future is one byte.
fn tasks<R: Rival>(count: usize) {
    let mut joins = Vec::with_capacity(count);
    let before = mark();
    for _ in 0..count {
        joins.push(R::spawn(async {
            let _here = arrived();
            pending::<()>().await;
        }));
    }
    wait_for(&ARRIVED, count);
    report(&before, count);
    joins.drain(..).for_each(R::cancel);
    wait_for(&ENDED, count);
    report(&before, count);
}

/// All timers belong to one task, which polls each once.
fn timers<R: Rival>(count: usize) {
    let before = mark();
    let task = R::spawn(async move {
        let _here = arrived();
        let mut timers: Vec<_> = (0..count).map(|_| Box::pin(R::timer(Duration::from_secs(3_600)))).collect();
        poll_fn(|cx| {
            let all_wait = timers.iter_mut().all(|timer| timer.as_mut().poll(cx).is_pending());
            assert!(all_wait, "an hour is long");
            drop(arrived());
            Poll::<()>::Pending
        })
        .await;
    });
    wait_for(&ARRIVED, 2);
    report(&before, count);
    R::cancel(task);
    wait_for(&ENDED, 2);
    report(&before, count);
}

/// Reads from a connection, for streams with the traits of futures-io.
pub(super) async fn hold(mut stream: impl AsyncRead + Unpin) {
    let _here = arrived();
    let mut byte = [0];
    while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {}
}

/// The parent holds the clients.
fn connections<R: Rival>() {
    let count = (descriptors::available() - FIRST_CONNECTIONS).min(PEAK);
    let listener = listen(0).expect("a free port");
    let address = listener.local_addr().expect("a bound listener");
    R::detach(R::spawn(R::accept_and_hold(listener)));
    println!("connect {address} {FIRST_CONNECTIONS}");
    wait_for(&ARRIVED, FIRST_CONNECTIONS);
    let before = mark();
    println!("connect {address} {count}");
    wait_for(&ARRIVED, FIRST_CONNECTIONS + count);
    report(&before, count);
    println!("close");
    wait_for(&ENDED, FIRST_CONNECTIONS + count);
    report(&before, count);
}
