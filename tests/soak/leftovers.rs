//! What may be left when all is over: nothing. [`Census`] counts; the panic hook notes what was not on purpose.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// How every panic begins that belongs to the test.
const ON_PURPOSE: &str = "on purpose";

/// What a `Handle` says once its runtime is gone.
const OUTLIVED: &str = "the runtime of this handle was dropped";

/// What may be more than it was.
pub struct Leeway {
    bytes: isize,
    blocks: isize,
    resident: usize,
}

/// Of runtimes that are used: their tables are as large as they were needed once, and after the warm-up they were not.
pub const IN_USE: Leeway = Leeway { bytes: 512 << 10, blocks: 2_000, resident: 64 << 20 };

/// When they are gone: the tables of the default instance. What leaks once in many thousand rounds is more after an hour.
pub const AFTERWARDS: Leeway = Leeway { bytes: 256 << 10, blocks: 500, resident: 128 << 20 };

/// What did not go as it should.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub fn failed(what: &str) {
    FAILED.lock().unwrap().push(what.to_string());
}

pub fn assert_nothing_failed() {
    let failed = FAILED.lock().unwrap().join("\n");
    assert!(failed.is_empty(), "{failed}");
}

pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no text)")
}

pub fn is_on_purpose(panic: &(dyn Any + Send)) -> bool {
    text_of(panic).starts_with(ON_PURPOSE)
}

pub fn is_of_an_outlived_handle(panic: &(dyn Any + Send)) -> bool {
    text_of(panic).contains(OUTLIVED)
}

/// Panics that are on purpose are not printed; any other one, on whatever thread, is a failure.
pub fn be_quiet_about_what_is_on_purpose() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_on_purpose(info.payload()) || is_of_an_outlived_handle(info.payload()) {
            return;
        }
        // Not kept by the test harness: something may hang now.
        let _ = writeln!(io::stderr(), "{info}");
        if let Ok(mut failed) = FAILED.try_lock() {
            failed.push(info.to_string());
        }
        usual(info);
    }));
}

/// Counts what is in use.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

// SAFETY: all is the system's; only the sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        BLOCKS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Relaxed);
        BLOCKS.fetch_sub(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the process has.
#[derive(Clone, Copy, Debug)]
pub struct Census {
    pub threads: usize,
    pub descriptors: usize,
    /// Allocated and not freed.
    bytes: isize,
    blocks: isize,
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
            blocks: BLOCKS.load(Relaxed),
            resident: pages().unwrap_or(0) * 4096,
        }
    }

    /// The larger one of each.
    pub fn most(self, other: Self) -> Self {
        Self {
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
            bytes: self.bytes.max(other.bytes),
            blocks: self.blocks.max(other.blocks),
            resident: self.resident.max(other.resident),
        }
    }

    /// Whether there is no more of anything than there was, but for what may stay.
    pub fn is_back_at(&self, before: &Self, leeway: &Leeway) -> bool {
        self.threads <= before.threads
            && self.descriptors <= before.descriptors
            && self.bytes < before.bytes + leeway.bytes
            && self.blocks < before.blocks + leeway.blocks
            && self.resident < before.resident + leeway.resident
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, descriptors, bytes, blocks, resident } = self;
        let (kib, resident) = (bytes >> 10, resident >> 10);
        write!(
            f,
            "{threads} threads, {descriptors} fds, {kib} KiB live in {blocks} blocks, {resident} KiB resident"
        )
    }
}
