//! A short time slice for a thread that is there to react, where Linux has them (6.12 and later).
//!
//! A thread that wakes up beside others that compute gets a core at once if its slice is shorter than theirs; else it
//! waits until one of them has used its own up, which is milliseconds. It gets no more of the core than without.

use std::ffi::{c_int, c_long, c_uint};

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

/// Asks for one on the calling thread. Nothing happens where that is refused, or the thread has a policy of its own.
pub(super) fn shorten() {
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const ME: c_int = 0;
    const NO_FLAGS: c_uint = 0;
    const SIZE: c_uint = size_of::<Attributes>() as c_uint;
    let [set, get] = CALLS;
    let mut attributes = Attributes::default();
    // SAFETY: `syscall` is declared as C libraries have it. The kernel writes no more than it is told there is room for.
    let got = unsafe { syscall(get, ME, &raw mut attributes, SIZE, NO_FLAGS) };
    if got != 0 || attributes.policy != NORMAL {
        return;
    }
    // All else stays as it was.
    (attributes.size, attributes.runtime) = (SIZE, SHORTEST);
    // SAFETY: as above; the kernel reads as much as `size` says.
    let _ = unsafe { syscall(set, ME, &raw const attributes, NO_FLAGS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel says so, where it is new enough; and nothing else is changed.
    #[test]
    fn a_slice_is_shortened_or_left_alone() {
        let slice = || {
            let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
            let line = text.lines().find(|line| line.starts_with("se.slice"))?;
            line.rsplit(':').next()?.trim().parse::<u64>().ok()
        };
        std::thread::spawn(move || {
            let before = slice();
            shorten();
            if let (Some(before), Some(after)) = (before, slice()) {
                assert!(after == SHORTEST || after == before, "{before} {after}");
            }
        })
        .join()
        .unwrap();
    }
}
