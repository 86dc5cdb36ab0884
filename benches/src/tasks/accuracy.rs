//! How late does a timer fire, and what does firing cost?
//!
//! Hypothesis: the lateness is the time to wake a sleeping thread, unless deadlines are rounded (tokio's are,
//! to the next millisecond). Firing costs CPU time per event: many timers that are due at once share one
//! wait.

use std::time::{Duration, Instant};

use super::cases::{Sample, Scale};
use super::rivals::Rival;
use crate::driver::procfs::own_cpu;

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

/// A task per timer, all due within 20 ms; the figure is the CPU time of the process, including spawns.
pub(super) fn fire<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(20_000);
    let before = own_cpu();
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
    Sample { elapsed: own_cpu() - before, operations }
}

/// A task per timer, with deadlines 10 microseconds apart, for a second, in no order. The figure is the CPU
/// time of the process after all timers are armed: the cost of firing them, and of polling and ending their
/// tasks.
pub(super) fn storm<R: Rival>(scale: Scale) -> Sample {
    const APART: Duration = Duration::from_micros(10);
    let operations = scale.of(100_000);
    let lead = APART * (operations as u32 * 2 / 5);
    R::block_on_worker(async move {
        let begin = Instant::now() + lead;
        let tasks: Vec<_> = (0..operations)
            .map(|number| {
                let deadline = begin + APART * place(number, operations) as u32;
                R::spawn(async move {
                    R::timer(deadline.saturating_duration_since(Instant::now())).await;
                })
            })
            .collect();
        R::timer((begin - lead / 4).saturating_duration_since(Instant::now())).await;
        let before = own_cpu();
        for task in tasks {
            task.await;
        }
        Sample { elapsed: own_cpu() - before, operations }
    })
}

/// Permutes the numbers below `count`: each place is taken once, because the factor is a prime that divides
/// no size here.
fn place(number: usize, count: usize) -> usize {
    number * 7_919 % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_timers_of_a_storm_have_the_same_place() {
        for count in [100_000, 20_000] {
            let places: std::collections::HashSet<_> =
                (0..count).map(|number| place(number, count)).collect();
            assert_eq!(places.len(), count);
        }
    }
}
