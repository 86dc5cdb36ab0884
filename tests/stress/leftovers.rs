//! What may be left when all is over: nothing. [`Census`] counts; the panic hook notes what was not on purpose.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How every panic begins that belongs to the test.
const ON_PURPOSE: &str = "on purpose";

/// How long threads take to end when all else has: surplus workers stay for a second.
const PATIENCE: Duration = Duration::from_secs(15);

/// What did not go as it should.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub fn failed(what: &str) {
    FAILED.lock().unwrap().push(what.to_string());
}

pub fn assert_nothing_failed() {
    let failed = FAILED.lock().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

pub fn is_on_purpose(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).is_some_and(|text: &str| text.starts_with(ON_PURPOSE))
}

/// Panics that are on purpose are not printed; any other one, on whatever thread, is a failure.
pub fn be_quiet_about_what_is_on_purpose() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_on_purpose(info.payload()) {
            return;
        }
        // Not kept by the test harness: something may hang now.
        let _ = writeln!(io::stderr(), "{info}");
        failed(&info.to_string());
        usual(info);
    }));
}

/// Counts the bytes that are in use.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: all is the system's; only the sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the process has.
#[derive(Clone, Copy, Debug)]
pub struct Census {
    threads: usize,
    descriptors: usize,
    /// Allocated and not freed.
    bytes: isize,
    /// Resident memory.
    resident: usize,
}

impl Census {
    pub fn take() -> Self {
        let entries = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
        let pages = || fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<usize>().ok();
        Self {
            threads: entries("/proc/self/task"),
            descriptors: entries("/proc/self/fd"),
            bytes: BYTES.load(Relaxed),
            resident: pages().unwrap_or(0) * 4096,
        }
    }

    /// Waits until there are no more threads and descriptors than there were.
    pub fn wait_until_back(self) -> Self {
        let start = Instant::now();
        loop {
            let now = Self::take();
            if now.threads <= self.threads && now.descriptors <= self.descriptors {
                return now;
            }
            assert!(start.elapsed() < PATIENCE, "not gone after {PATIENCE:?}: {now}; before: {self}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the allocator keeps, and tables that stay as large as they were once, is not growth.
    pub fn assert_no_gross_growth(self, first: Self) {
        assert!(self.bytes < first.bytes + (4 << 20), "memory leaks: {first}, and now {self}");
        assert!(self.resident < 2 * first.resident + (64 << 20), "memory grows: {first}, and now {self}");
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, descriptors, bytes, resident } = self;
        let resident = resident >> 10;
        write!(f, "{threads} threads, {descriptors} descriptors, {bytes} bytes, {resident} KiB resident")
    }
}
