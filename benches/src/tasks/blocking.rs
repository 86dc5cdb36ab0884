//! What does it cost to run a closure on a thread that may block?
//!
//! Hypothesis: one by one it costs two ways between threads, so it pays if both sides stay awake for a moment; in a heap it costs
//! the threads that are started and woken for closures that would be done before they come.

use std::time::Instant;

use super::cases::{Sample, Scale};
use super::rivals::Rival;

/// Closures submitted at once.
const HEAP: usize = 10_000;

async fn one_by_one<R: Rival>(operations: usize) -> Sample {
    let start = Instant::now();
    for _ in 0..operations {
        R::unblock(|| ()).await;
    }
    Sample { elapsed: start.elapsed(), operations }
}

pub(super) fn one_by_one_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(one_by_one::<R>(scale.of(50_000)))
}

/// The awaiting thread is no worker.
pub(super) fn one_by_one_in_main<R: Rival>(scale: Scale) -> Sample {
    R::block_on(one_by_one::<R>(scale.of(50_000)))
}

async fn heaps<R: Rival>(operations: usize) -> Sample {
    let rounds = operations.div_ceil(HEAP);
    let start = Instant::now();
    for _ in 0..rounds {
        let joins: Vec<_> = (0..HEAP).map(|_| R::unblock(|| ())).collect();
        for join in joins {
            join.await;
        }
    }
    Sample { elapsed: start.elapsed(), operations: rounds * HEAP }
}

pub(super) fn heaps_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(heaps::<R>(scale.of(100_000)))
}
