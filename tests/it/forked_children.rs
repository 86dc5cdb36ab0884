//! Children of `fork`, for tests that run in a process of their own.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

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
