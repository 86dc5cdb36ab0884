//! Children of `fork`, for tests that run in a process of their own.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::setups::SOON;

unsafe extern "C" {
    fn fork() -> c_int;
    fn _exit(status: c_int) -> !;
}

/// Forks; `None` in the child.
pub fn split() -> Option<Pid> {
    // SAFETY: what the child does is what is tested: it uses the allocator and threads of its own, as the C library allows.
    Pid::from_raw(unsafe { fork() })
}

/// Ends the child here, without what a process does at its end.
pub fn leave(well: bool) -> ! {
    // SAFETY: it is a system call.
    unsafe { _exit(c_int::from(!well)) }
}

/// How the child ended; one that hangs is a test that failed.
pub fn end_of(child: Pid) -> WaitStatus {
    let start = Instant::now();
    loop {
        if let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG).unwrap() {
            return status;
        }
        if start.elapsed() > SOON {
            kill_process(child, Signal::KILL).unwrap();
            panic!("the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `body` in a forked child, and sees it end well.
pub fn in_child(body: impl FnOnce()) {
    match split() {
        None => leave(catch_unwind(AssertUnwindSafe(body)).is_ok()),
        Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
    }
}
