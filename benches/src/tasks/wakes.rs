//! What is the cost of a wake without a channel?
//!
//! Hypothesis: inside of a runtime, at most one queue operation and a poll; from a plain thread, additionally
//! the wake of a sleeping worker, and the wake of that thread on the way back.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use super::cases::{Sample, Scale};
use super::rivals::Rival;

/// Two sides that take turns: a side that has passed the baton waits to get it back.
#[derive(Default)]
struct Baton(Mutex<Turn>);

#[derive(Default)]
struct Turn {
    holder: usize,
    waiting: [Option<Waker>; 2],
}

impl Baton {
    fn pass(&self, from: usize) {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turn.holder = 1 - from;
        let waiting = turn.waiting[1 - from].take();
        drop(turn);
        waiting.into_iter().for_each(Waker::wake);
    }

    async fn wait(&self, side: usize) {
        poll_fn(|context| {
            let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if turn.holder == side {
                return Poll::Ready(());
            }
            turn.waiting[side] = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// The first side passes and waits. An operation of the sample is one wake, so a round trip is two.
async fn pass<R: Rival>(rounds: usize) -> Sample {
    let baton = Arc::new(Baton::default());
    let other = baton.clone();
    let passing_back = R::spawn(async move {
        for _ in 0..rounds {
            other.wait(1).await;
            other.pass(1);
        }
    });
    let start = Instant::now();
    for _ in 0..rounds {
        baton.pass(0);
        baton.wait(0).await;
    }
    let elapsed = start.elapsed();
    passing_back.await;
    Sample { elapsed, operations: 2 * rounds }
}

pub(super) fn in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(pass::<R>(scale.of(50_000)))
}

/// The first side parks its thread without help of a runtime, the same for all rivals.
pub(super) fn from_outside<R: Rival>(scale: Scale) -> Sample {
    futures_lite::future::block_on(pass::<R>(scale.of(10_000)))
}
