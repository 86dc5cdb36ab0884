//! A short time slice for a thread that is there to react, where Linux has them (6.12 and later).
//!
//! A thread that wakes up beside others that compute gets a core at once if its slice is shorter than theirs; else it
//! waits until one of them has used its own up, which is milliseconds. It gets no more of the core than without.

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
    /// Of the normal policy: the slice, in nanoseconds; the kernel takes 0.1 to 100 ms.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// `sched_setattr` and `sched_getattr`. C libraries have no functions for these, but for the newest.
#[cfg(target_arch = "x86_64")]
const CALLS: [c_long; 2] = [314, 315];
#[cfg(target_arch = "aarch64")]
const CALLS: [c_long; 2] = [274, 275];

/// The policy of threads that nobody has given another one.
const NORMAL: u32 = 0;
const SHORTEST: u64 = 100_000;
const RESET_ON_FORK: u64 = 1;

/// Asks for one on the calling thread. Nothing happens where that is refused, or the thread has a policy of its own.
pub(super) fn shorten() {
    if !is_unfiltered() {
        return;
    }
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    // C libraries take all of these for `long`, whatever the call makes of them.
    const ME: c_long = 0;
    const NO_FLAGS: c_long = 0;
    const SIZE: c_long = size_of::<Attributes>() as c_long;
    let [set, get] = CALLS;
    let mut attributes = Attributes::default();
    // SAFETY: `syscall` is declared as C libraries have it. The kernel writes no more than it is told there is room for.
    let got = unsafe { syscall(get, ME, &raw mut attributes, SIZE, NO_FLAGS) };
    if got != 0 || attributes.policy != NORMAL {
        return;
    }
    // All else stays as it was, and for this thread only: those that it starts, and processes, begin with the usual slice.
    (attributes.size, attributes.runtime) = (SIZE as u32, SHORTEST);
    attributes.flags |= RESET_ON_FORK;
    // SAFETY: as above; the kernel reads as much as `size` says.
    let _ = unsafe { syscall(set, ME, &raw const attributes, NO_FLAGS) };
}

/// Whether no filter of system calls is in force, which may end the process for this one: services that have no business
/// with other threads' priorities are often run so (systemd's `SystemCallFilter=~@resources`). Nobody tells what it does.
fn is_unfiltered() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "0"))
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;

    /// The calling thread's, in nanoseconds.
    fn slice() -> Option<u64> {
        let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    /// Fails if the call is made whatever a filter has to say: this one allows all, others end the process.
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
            // SAFETY: as C has it; the kernel copies the program. It is for this thread only.
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

    /// The kernel says so, where it is new enough and tells. Fails, there, if nothing is asked for, or threads inherit it.
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

    /// Whether this kernel lets threads choose.
    fn has_slices() -> bool {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers =
            release.split(|char: char| !char.is_ascii_digit()).map_while(|part| part.parse().ok());
        numbers.next() >= Some(6_u32) && numbers.next() >= Some(12)
    }
}
