//! What a simulation prints if the process aborts in it: its seed.
//!
//! An abort runs no destructor, and a test harness loses what it has captured. So the seed is written by the
//! handler of the signal that each abort raises: that of a panic in a destructor during an unwinding, of
//! `async-task`, of a stack that is too small, and of the program's own call. The handler runs on the thread
//! that aborts.

use std::cell::Cell;
use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::Once;

use rustix::process::Signal;

/// What is written before the seed, between it and its repetition, and after that.
const ABORTED_WITH: [&[u8]; 3] = [
    b"\npaceline: the process aborts in the simulation with seed ",
    b". PACELINE_SEED=",
    b" runs a test of `#[paceline::sim]` with that seed alone\n",
];

thread_local! {
    /// The seed of the simulation that this thread is in. Without a destructor, so the handler may read it.
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Sets the seed of the simulation that this thread is in. The first call in the process registers the
/// handler.
pub(super) fn set_seed(seed: Option<u64>) {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: `write_seed` allocates nothing, and takes no lock but that of abort(3), which a signal
        // handler may call. If the handler cannot be registered, an abort prints no seed.
        let _ = unsafe { signal_hook_registry::register(Signal::ABORT.as_raw(), write_seed) };
    });
    SEED.set(seed);
}

/// Writes the seed to standard error, past all buffers, and lets the signal end the process. The stack may be
/// the small one that std has for signals, so this formats by hand.
fn write_seed() {
    // As in all systems of Unix.
    unsafe extern "C" {
        fn signal(number: c_int, handler: usize) -> usize;
        fn raise(number: c_int) -> c_int;
    }
    const DEFAULT: usize = 0;
    let abort = Signal::ABORT.as_raw();
    // SAFETY: the declaration is that of C, and a handler may call it. From here on the signal ends the
    // process.
    unsafe { signal(abort, DEFAULT) };
    if let Some(mut left) = SEED.get() {
        let mut digits = [0; 20];
        let mut first = digits.len();
        while left > 0 || first == digits.len() {
            first -= 1;
            digits[first] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        // SAFETY: the number is that of standard error, whatever is open there.
        let stderr = unsafe { BorrowedFd::borrow_raw(2) };
        let seed = &digits[first..];
        for part in [ABORTED_WITH[0], seed, ABORTED_WITH[1], seed, ABORTED_WITH[2]] {
            let _ = rustix::io::write(stderr, part);
        }
    }
    // SAFETY: as above.
    unsafe { raise(abort) };
}
