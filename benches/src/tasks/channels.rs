//! What is the cost if one task wakes another?
//!
//! Hypothesis: two wakes and two polls per round trip if the tasks stay on one thread; a futex wake and a
//! context switch more if a runtime moves the woken task to the other worker.

use std::time::Instant;

use async_channel::{Receiver, Sender, bounded};

use super::cases::{Sample, Scale};
use super::rivals::Rival;

async fn echo(requests: Receiver<usize>, replies: Sender<usize>) {
    while let Ok(request) = requests.recv().await {
        if replies.send(request).await.is_err() {
            return;
        }
    }
}

async fn ping_pong<R: Rival>(operations: usize) {
    let (request, requests) = bounded(1);
    let (replies, reply) = bounded(1);
    let echoing = R::spawn(echo(requests, replies));
    exchange(operations, request, reply).await;
    echoing.await;
}

async fn exchange(operations: usize, request: Sender<usize>, reply: Receiver<usize>) {
    for number in 0..operations {
        request.send(number).await.expect("the echo task lives");
        assert_eq!(reply.recv().await, Ok(number));
    }
}

async fn timed<R: Rival>(operations: usize) -> Sample {
    let start = Instant::now();
    ping_pong::<R>(operations).await;
    Sample { elapsed: start.elapsed(), operations }
}

pub(super) fn one_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(timed::<R>(scale.of(50_000)))
}

pub(super) fn one_in_main<R: Rival>(scale: Scale) -> Sample {
    R::block_on(timed::<R>(scale.of(10_000)))
}

/// The echo runs on another runtime of the same process, so every message crosses threads.
pub(super) fn across<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(10_000);
    R::block_on_worker(async move {
        let start = Instant::now();
        let (request, requests) = bounded(1);
        let (replies, reply) = bounded(1);
        let echoing = R::spawn_elsewhere(echo(requests, replies));
        exchange(operations, request, reply).await;
        echoing.await;
        Sample { elapsed: start.elapsed(), operations }
    })
}

pub(super) fn thirty_two<R: Rival>(scale: Scale) -> Sample {
    const PAIRS: usize = 32;
    let operations = scale.of(3_000);
    R::block_on_worker(async move {
        let start = Instant::now();
        let pairs: Vec<_> = (0..PAIRS).map(|_| R::spawn(ping_pong::<R>(operations))).collect();
        for pair in pairs {
            pair.await;
        }
        Sample { elapsed: start.elapsed(), operations: PAIRS * operations }
    })
}
