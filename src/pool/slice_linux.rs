//! A short time slice for a thread that is there to react, on Linux 6.12 and later.
//!
//! A thread that wakes up beside threads that compute gets a core at once if its slice is shorter than
//! theirs; otherwise it waits for milliseconds, until one of them has used up its own slice. A short slice
//! does not change a thread's share of the core.

use std::ffi::c_long;
use std::fs;

/// The kernel's `sched_attr`, in its first version.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For the normal policy this is the slice, in nanoseconds; the kernel accepts 0.1 to 100 ms.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The numbers of `sched_setattr` and `sched_getattr`. Most C libraries have no functions for them.
#[cfg(target_arch = "x86_64")]
const CALLS: [c_long; 2] = [314, 315];
#[cfg(target_arch = "aarch64")]
const CALLS: [c_long; 2] = [274, 275];

/// The policy of threads that were given no other one.
const NORMAL: u32 = 0;
const SHORTEST: u64 = 100_000;
const RESET_ON_FORK: u64 = 1;

/// Asks for the shortest slice on the calling thread, for good. Has no effect if the system refuses, if the
/// thread has a policy of its own, or if a filter of system calls is in force.
pub(super) fn shorten() {
    if !is_unfiltered() {
        return;
    }
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    // `syscall` reads each argument as a `long`, whatever type the system call gives it.
    const ME: c_long = 0;
    const NO_FLAGS: c_long = 0;
    const SIZE: c_long = size_of::<Attributes>() as c_long;
    let [set, get] = CALLS;
    let mut attributes = Attributes::default();
    // SAFETY: the declaration of `syscall` is that of C libraries. `attributes` is valid for writes of
    // `SIZE` bytes, and the kernel writes no more than that.
    let got = unsafe { syscall(get, ME, &raw mut attributes, SIZE, NO_FLAGS) };
    if got != 0 || attributes.policy != NORMAL {
        return;
    }
    // All other attributes stay as they were. The slice is for this thread only: threads and processes that
    // it starts begin with the usual one.
    (attributes.size, attributes.runtime) = (SIZE as u32, SHORTEST);
    attributes.flags |= RESET_ON_FORK;
    // SAFETY: as above; the kernel reads as many bytes as `attributes.size` says.
    let _ = unsafe { syscall(set, ME, &raw const attributes, NO_FLAGS) };
}

/// Returns whether no filter of system calls is in force. A filter may end the process for this call:
/// services that need not change priorities often run with one (systemd's `SystemCallFilter=~@resources`).
/// No interface tells what a filter forbids.
fn is_unfiltered() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "0"))
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;

    /// Returns the calling thread's slice, in nanoseconds.
    fn slice() -> Option<u64> {
        let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    /// Fails if the call is made although a filter is in force. This filter allows all calls; others end
    /// the process.
    #[test]
    fn where_calls_are_filtered_this_one_is_not_made() {
        #[repr(C)]
        struct Instruction(u16, u8, u8, u32);
        #[repr(C)]
        struct Program(u16, *const Instruction);
        unsafe extern "C" {
            fn prctl(option: c_int, ...) -> c_int;
        }
        const SET_SECCOMP: c_int = 22;
        const SET_NO_NEW_PRIVILEGES: c_int = 38;
        const FILTER: c_long = 2;
        std::thread::spawn(|| {
            let allow = Instruction(6, 0, 0, 0x7fff_0000);
            let program = Program(1, &raw const allow);
            let [one, zero]: [c_long; 2] = [1, 0];
            // SAFETY: the declaration of `prctl` is that of C. The kernel copies the program, which is
            // valid for the call. The filter is in force for this thread only.
            let filters = unsafe {
                prctl(SET_NO_NEW_PRIVILEGES, one, zero, zero, zero) == 0
                    && prctl(SET_SECCOMP, FILTER, &raw const program) == 0
            };
            let before = slice();
            shorten();
            assert!(!filters || !is_unfiltered() && slice() == before);
        })
        .join()
        .unwrap();
    }

    /// Reads the slice back where the kernel is new enough and reports it. Fails, there, if no slice is
    /// asked for, or if threads inherit it.
    #[test]
    fn a_slice_is_shortened_for_one_thread() {
        std::thread::spawn(move || {
            let Some(before) = slice() else { return };
            shorten();
            assert!(slice() == Some(SHORTEST) || !is_unfiltered() || !has_slices(), "{before}");
            assert_eq!(std::thread::spawn(slice).join().unwrap(), Some(before));
        })
        .join()
        .unwrap();
    }

    /// Returns whether this kernel lets threads choose their slice.
    fn has_slices() -> bool {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers =
            release.split(|char: char| !char.is_ascii_digit()).map_while(|part| part.parse().ok());
        numbers.next() >= Some(6_u32) && numbers.next() >= Some(12)
    }
}
