//! Answers the driver's requests for contention counts: a line in, the three counts out.

use std::io::Write;

/// Runs on a thread of its own, which sleeps in the read and ends with the input.
pub(super) fn answer() {
    std::thread::spawn(|| {
        for line in std::io::stdin().lines() {
            let met = ::paceline::contention();
            let mut output = std::io::stdout().lock();
            let text = format!("{} {} {}\n", met.failed_swaps, met.contended_locks, met.lock_wait_nanos);
            if line.is_err() || output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    });
}
