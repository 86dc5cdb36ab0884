//! The bodies of the functions that [`sim_libc!`](crate::sim_libc!) defines in place of the C library's. On
//! threads that are in no simulation, they make the system call of the same name.

use std::ffi::{c_int, c_uint, c_void};
use std::{mem, ptr};

use crate::simulated::with_system;

/// The C library's `getrandom`. In a simulation, it returns random numbers that depend on the seed.
///
/// # Safety
///
/// `buffer` points to `length` bytes that may be written.
#[doc(hidden)]
pub unsafe fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    let filled = with_system(|simulation| {
        for at in (0..length).step_by(mem::size_of::<u64>()) {
            let bytes = simulation.random().to_le_bytes();
            let count = bytes.len().min(length - at);
            // SAFETY: `at + count` is `length` at most, and the buffer is not part of `bytes`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast::<u8>().add(at), count) };
        }
        length as isize
    });
    // SAFETY: the caller's promise.
    filled.unwrap_or_else(|| unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as isize })
}

/// The C library's `clock_gettime`. In a simulation, it returns the virtual time.
///
/// # Safety
///
/// `time` points to a `timespec` that may be written.
#[doc(hidden)]
pub unsafe fn clock_gettime(clock: c_int, time: *mut c_void) -> c_int {
    let shown = with_system(|simulation| match clock {
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => Some(simulation.monotonic()),
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(simulation.wall()),
        _ => None,
    });
    let Some(shown) = shown.flatten() else {
        // SAFETY: the caller's promise.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int };
    };
    let shown = libc::timespec { tv_sec: shown.as_secs() as _, tv_nsec: shown.subsec_nanos().into() };
    // SAFETY: the caller's promise.
    unsafe { time.cast::<libc::timespec>().write(shown) };
    0
}

/// Lets a simulation control the random numbers and the clocks of the operating system, for all crates of
/// the program: the order of a `HashMap`, `getrandom` and what is seeded by it, `Instant::now` and
/// `SystemTime::now` then depend on the seed and on the virtual time alone. Call the macro once in a test
/// program, outside of functions.
///
/// It defines the functions `getrandom` and `clock_gettime` of the C library, so a program in which another
/// crate defines them does not link. On threads that are in no simulation, they make the system call; to read
/// the clock takes 0.4 microseconds then, and 0.04 without the macro. It is for 64-bit Linux and Android, and
/// does nothing elsewhere.
///
/// From [`Sim::new`](crate::sim::Sim::new) until the [`Sim`](crate::sim::Sim) is dropped, on its thread:
///
/// - Random numbers depend on the seed. The standard library gets the keys of its hash maps once per thread,
///   so this holds only on a thread that has made no map before. Each run of
///   [`#[paceline::sim]`](macro@crate::sim) and of [`check`](crate::sim::check) is on such a thread. A
///   `static` that takes a random number when it is first used, such as a `LazyLock` of a `HashMap`, makes
///   the first run of a process differ from later ones. Use such a `static` once before the first run.
/// - `Instant::now` is the virtual time, equal to [`clock::now`](crate::clock::now), after an
///   [`advance`](crate::clock::advance) from the next poll on. It does not advance during a poll, so a loop
///   that waits until some time has passed never ends. Do not block with a time limit (`recv_timeout`,
///   `Condvar::wait_timeout`, `park_timeout`): the wait may return at once, never, or after hours, because
///   the kernel compares the limit with its own clock. Do not compare an `Instant` from inside with one from
///   outside.
/// - `SystemTime::now` is the [wall clock](crate::sim::Network::wall_clock) of the node that calls it.
///
/// The `block_on` of another [runtime](crate::Runtime) on that thread waits by the system's clocks, and its
/// future sees them. Make timers for it in that future: an argument is evaluated in the simulation.
///
/// What does not call these functions is not controlled: other functions of the C library (`time`,
/// `gettimeofday`, `getentropy`), system calls that a crate makes by itself, as rustix does, instructions of
/// the processor, files such as `/dev/urandom`, and crates that look for `getrandom` at run time in a program
/// that is statically linked with glibc.
///
/// ```standalone_crate
/// use std::collections::HashSet;
/// use std::time::{Duration, Instant, SystemTime};
/// use paceline::sim;
///
/// paceline::sim_libc!();
///
/// # #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
/// # fn main() {
/// let run = |sim: &mut sim::Sim| {
///     sim.block_on(async {
///         let begin = (Instant::now(), SystemTime::now());
///         paceline::Timer::after(Duration::from_secs(3600)).await;
///         assert_eq!(begin.0.elapsed(), Duration::from_secs(3600));
///         assert_eq!(begin.1.elapsed().unwrap(), Duration::from_secs(3600));
///         // In the same order in each run with this seed.
///         let set: HashSet<u32> = (0..100).collect();
///         sim::note(format_args!("{set:?} at {begin:?}"));
///     });
/// };
/// assert_eq!(sim::check(7, run).hash, sim::check(7, run).hash);
/// assert_ne!(sim::check(7, run).hash, sim::check(8, run).hash);
/// # }
/// # #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! sim_libc {
    () => {
        const _: () = {
            use ::core::ffi::{c_int, c_uint, c_void};

            // SAFETY: the function of the C library with the same contract.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
                // SAFETY: the caller's promise.
                unsafe { $crate::sim::libc_calls::getrandom(buffer, length, flags) }
            }

            // SAFETY: as above.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut c_void) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { $crate::sim::libc_calls::clock_gettime(clock, time) }
            }
        };
    };
}
