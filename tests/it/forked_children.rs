//! Children of `fork`, for tests that run in a process of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::setups::eventually;

unsafe extern "C" {
    fn fork() -> c_int;
    fn _exit(status: c_int) -> !;
}

/// Forks; `None` in the child.
pub fn split() -> Option<Pid> {
    // SAFETY: the child uses the allocator and threads of its own, as the C library allows; this is what the
    // test is about.
    Pid::from_raw(unsafe { fork() })
}

/// Ends the child here, without exit handlers.
pub fn leave(well: bool) -> ! {
    // SAFETY: `_exit` is a system call.
    unsafe { _exit(c_int::from(!well)) }
}

/// Returns how the child ended. A child that hangs is a failure.
pub fn end_of(child: Pid) -> WaitStatus {
    let mut end = None;
    let waits = AssertUnwindSafe(|| {
        eventually("the child ends", || {
            end = waitpid(Some(child), WaitOptions::NOHANG).unwrap();
            end.is_some()
        });
    });
    if let Err(hang) = catch_unwind(waits) {
        kill_process(child, Signal::KILL).unwrap();
        resume_unwind(hang);
    }
    end.expect("it has ended").1
}

/// Runs `body` in a forked child, and checks that the child ends well.
pub fn in_child(body: impl FnOnce()) {
    match split() {
        None => leave(catch_unwind(AssertUnwindSafe(body)).is_ok()),
        Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
    }
}

/// Whether a thread of the parent had the allocator's lock at the fork. Set in a child only.
static ALLOCATOR_IS_LOCKED: AtomicBool = AtomicBool::new(false);

/// Makes this child fail from now on if it allocates or frees memory. It would wait for ever if a thread of
/// its parent had the allocator's lock at the fork, because that thread does not exist here. (Some C
/// libraries take care of that lock at a fork. The allocators of other packages do not.)
pub fn lock_allocator() {
    ALLOCATOR_IS_LOCKED.store(true, Relaxed);
}

/// The allocator of the system, unless it is [locked](lock_allocator).
struct Lockable;

#[global_allocator]
static ALLOCATOR: Lockable = Lockable;

impl Lockable {
    fn lock() {
        if ALLOCATOR_IS_LOCKED.load(Relaxed) {
            leave(false);
        }
    }
}

// SAFETY: all calls go to `System`, or do not return.
unsafe impl GlobalAlloc for Lockable {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::lock();
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::lock();
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::lock();
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::lock();
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}
