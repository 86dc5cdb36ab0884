//! The same operations on a runtime's own threads, and operations that need several threads: park, unpark,
//! promote.
//!
//! Hypothesis: with one worker, a spawn and an event cost as much as without other threads, within some
//! percent; if a thread wakes another one, the kernel's part is nearly all of the cost.

use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;

use futures_lite::future;
use paceline::{Promotion, Runtime, Tuning};

use super::Rounds;
use super::events::Wire;

/// Builds a runtime without time-dependent parts: no spin before sleep, and a deputy that looks once an hour.
fn runtime(threads: usize, promotion: Promotion) -> Runtime {
    let tuning = Tuning::default().promotion(promotion).spin(Duration::ZERO);
    let tuning = tuning.max_blind(Duration::from_secs(3600));
    Runtime::builder().threads(threads).tuning(tuning).build().expect("a runtime starts")
}

fn exchanges_on(runtime: &Runtime, rounds: Rounds) -> Duration {
    runtime.block_on(runtime.spawn(async move {
        let (near, far) = Wire::pair();
        let _echo = paceline::spawn(far.echo());
        near.exchanges(rounds).await
    }))
}

pub(super) fn spawn(mut rounds: Rounds) -> Duration {
    let runtime = runtime(1, Promotion::Adaptive);
    runtime.block_on(runtime.spawn(async move {
        for () in &mut rounds {
            paceline::spawn(async {}).await;
        }
        rounds.took()
    }))
}

pub(super) fn exchange(rounds: Rounds) -> Duration {
    exchanges_on(&runtime(1, Promotion::Adaptive), rounds)
}

pub(super) fn park(mut rounds: Rounds) -> Duration {
    let runtime = runtime(1, Promotion::Adaptive);
    runtime.block_on(async {
        for () in &mut rounds {
            runtime.spawn(async {}).await;
        }
        rounds.took()
    })
}

/// Two bytes arrive. The task that gets the first byte blocks its thread until the promoted follower has
/// received the second one.
pub(super) fn promote(mut rounds: Rounds) -> Duration {
    let runtime = runtime(2, Promotion::Eager);
    let (received, both_received) = mpsc::channel();
    let (done, is_done) = mpsc::channel();
    let [(mut first, mut blocking), (mut second, mut other)] =
        runtime.block_on(async { [Wire::from_plain(), Wire::from_plain()] });
    let blocking = runtime.spawn(async move {
        while blocking.receive().await {
            both_received.recv().expect("the other task lives");
            done.send(()).expect("main waits");
        }
    });
    let other = runtime.spawn(async move {
        while other.receive().await {
            received.send(()).expect("the blocking task lives");
        }
    });
    for () in &mut rounds {
        first.write_all(b"x").expect("the other end is open");
        second.write_all(b"x").expect("the other end is open");
        is_done.recv().expect("the blocking task lives");
    }
    let took = rounds.took();
    drop((first, second));
    runtime.block_on(future::zip(blocking, other));
    took
}
