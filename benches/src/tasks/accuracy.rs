//! How late does a timer fire, and what does firing cost?
//!
//! Hypothesis: lateness is the wake of a sleeping thread, unless deadlines are rounded (tokio's are, to the next
//! millisecond). Firing costs CPU per event: many due at once share one wait.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::cases::{Sample, Scale};
use super::rivals::Rival;

/// One sleep after another, 1.3 ms each: not a whole number of milliseconds.
pub(super) fn lateness<R: Rival>(scale: Scale) -> Sample {
    const SLEEP: Duration = Duration::from_micros(1_300);
    let operations = scale.of(200);
    R::block_on_worker(async move {
        let mut elapsed = Duration::ZERO;
        for _ in 0..operations {
            let start = Instant::now();
            R::timer(SLEEP).await;
            elapsed += start.elapsed().saturating_sub(SLEEP);
        }
        Sample { elapsed, operations }
    })
}

/// A task per timer, all due within 20 ms; the figure is CPU time of the process, spawns included.
pub(super) fn fire<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(20_000);
    let before = process_cpu();
    R::block_on_worker(async move {
        let sleep = |number: usize| Duration::from_micros(5_000 + (number as u64 * 7_919) % 20_000);
        let tasks: Vec<_> = (0..operations)
            .map(|number| {
                R::spawn(async move {
                    R::timer(sleep(number)).await;
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    });
    Sample { elapsed: process_cpu() - before, operations }
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
