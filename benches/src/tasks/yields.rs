//! What is the cost of a round of the run queue?
//!
//! Hypothesis: one push and one pop per yield, without a lock and without waking a thread.

use std::time::Instant;

use futures_lite::future::yield_now;

use super::cases::{Sample, Scale};
use super::rivals::Rival;

const TASKS: usize = 200;

pub(super) fn many_tasks<R: Rival>(scale: Scale) -> Sample {
    let rounds = scale.of(1_000);
    R::block_on_worker(async move {
        let start = Instant::now();
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                R::spawn(async move {
                    for _ in 0..rounds {
                        yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        Sample { elapsed: start.elapsed(), operations: TASKS * rounds }
    })
}
