//! Answers the driver's requests for counts, a line in and a line out:
//!
//! - `contention`: the three counts of contention, and the three of the time under leadership;
//! - `count`: from now on writes are counted;
//! - `writes`: no longer, and the counts as JSON.

use std::io::Write;

use ::paceline::WriteKind;
use serde_json::{Value, json};

/// Runs on a thread of its own, which sleeps in the read and ends with the input.
pub(super) fn answer() {
    std::thread::spawn(|| {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            let mut output = std::io::stdout().lock();
            if writeln!(output, "{}", answer_to(&line)).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    });
}

fn answer_to(request: &str) -> String {
    match request {
        "count" => {
            ::paceline::count_writes(true);
            String::new()
        }
        "writes" => counted().to_string(),
        _ => {
            let (met, led) = (::paceline::contention(), ::paceline::time_led());
            format!(
                "{} {} {} {} {} {}",
                met.failed_swaps,
                met.contended_locks,
                met.lock_wait_nanos,
                led.leaderships,
                led.nanos,
                led.clock_nanos
            )
        }
    }
}

/// Stops the count of writes. Returns the counts, in the form that
/// [`Written::read`](crate::driver::writes::Written::read) expects.
pub(crate) fn counted() -> Value {
    ::paceline::count_writes(false);
    let row = |write: ::paceline::WriteCount| {
        let kind = match write.kind {
            WriteKind::Modify => "modify",
            WriteKind::Store => "store",
            WriteKind::Lock => "lock",
            _ => "other",
        };
        json!([kind, write.at.file(), write.at.line(), write.line, write.thread, write.count])
    };
    ::paceline::writes().into_iter().map(row).collect()
}
