//! Checks that nothing is left at the end. [`Census`] counts; the panic hook records unexpected panics.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// The prefix of every panic that is part of the test.
const ON_PURPOSE: &str = "on purpose";

/// The panic of a `Handle` after its runtime was dropped.
const OUTLIVED: &str = "the runtime of this handle was dropped";

/// How much each count may grow.
pub struct Leeway {
    bytes: isize,
    blocks: isize,
    resident: usize,
}

/// For runtimes in use: their tables keep their largest size, which they had not reached after the warm-up.
pub const IN_USE: Leeway = Leeway { bytes: 512 << 10, blocks: 2_000, resident: 64 << 20 };

/// After they were dropped: the tables of the default instance. A leak once in many thousand rounds shows
/// after an hour.
pub const AFTERWARDS: Leeway = Leeway { bytes: 256 << 10, blocks: 500, resident: 128 << 20 };

/// The failures.
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

/// Installs a panic hook: panics on purpose are not printed, and any other panic, on any thread, is a
/// failure.
pub fn be_quiet_about_what_is_on_purpose() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_on_purpose(info.payload()) || is_of_an_outlived_handle(info.payload()) {
            return;
        }
        // Written directly, because the test harness would capture it, and the process may hang now.
        let _ = writeln!(io::stderr(), "{info}");
        if let Ok(mut failed) = FAILED.try_lock() {
            failed.push(info.to_string());
        }
        usual(info);
    }));
}

/// Counts memory in use.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

// SAFETY: all calls go to `System`; only the sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        BLOCKS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Relaxed);
        BLOCKS.fetch_sub(1, Relaxed);
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The resources of the process.
#[derive(Clone, Copy, Debug)]
pub struct Census {
    pub threads: usize,
    pub descriptors: usize,
    /// Bytes that are allocated and not freed.
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

    /// Returns the larger value of each count.
    pub fn most(self, other: Self) -> Self {
        Self {
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
            bytes: self.bytes.max(other.bytes),
            blocks: self.blocks.max(other.blocks),
            resident: self.resident.max(other.resident),
        }
    }

    /// Returns whether no count has grown by more than its leeway.
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
