//! What a simulation prints if the process aborts in it: its seed.
//!
//! An abort runs no destructor, and a test harness loses what it has captured. So the seed is written by the
//! handler of the signal that each abort raises: that of a panic in a destructor during an unwinding, of
//! `async-task`, of a stack that is too small, and of the program's own call. The handler runs on the thread
//! that aborts.

use std::cell::Cell;
use std::io::{Cursor, Write};
use std::os::fd::BorrowedFd;
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::process::Signal;

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

/// Writes the seed to standard error, past all buffers, and ends the process: a signal that another process
/// has sent would not end it any more.
fn write_seed() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    // The abort below raises the signal again, and so may one on another thread.
    if HAS_BEGUN.swap(true, Relaxed) {
        return;
    }
    if let Some(seed) = SEED.get() {
        let mut text = Cursor::new([0; 200]);
        let _ = writeln!(
            text,
            "\npaceline: the process aborts in the simulation with seed {seed}. PACELINE_SEED={seed} runs a test of \
             `#[paceline::sim]` with that seed alone"
        );
        // SAFETY: the number is that of standard error, whatever is open there.
        let stderr = unsafe { BorrowedFd::borrow_raw(2) };
        let _ = rustix::io::write(stderr, &text.get_ref()[..text.position() as usize]);
    }
    process::abort();
}
