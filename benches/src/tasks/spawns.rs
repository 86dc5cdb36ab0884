//! What does a spawned task cost?
//!
//! Hypothesis: an allocation, a queue operation and, if the runtime wakes a second worker for the task, that
//! wake: "one-by-one" and chains show needless wakes, "many" shows the queue, "outside" the injector.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::cases::{Sample, Scale};
use super::rivals::Rival;

async fn one_by_one<R: Rival>(operations: usize) -> Sample {
    let start = Instant::now();
    for number in 0..operations {
        assert_eq!(R::spawn(async move { number }).await, number);
    }
    Sample { elapsed: start.elapsed(), operations }
}

pub(super) fn one_by_one_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(one_by_one::<R>(scale.of(100_000)))
}

/// The awaiting thread is no worker, so each await may cost two thread switches.
pub(super) fn one_by_one_in_main<R: Rival>(scale: Scale) -> Sample {
    R::block_on(one_by_one::<R>(scale.of(20_000)))
}

pub(super) async fn many<R: Rival>(operations: usize) -> Sample {
    let start = Instant::now();
    let joins: Vec<_> = (0..operations).map(|number| R::spawn(async move { number })).collect();
    let mut sum = 0;
    for join in joins {
        sum += join.await;
    }
    let elapsed = start.elapsed();
    assert_eq!(sum, operations * (operations - 1) / 2);
    Sample { elapsed, operations }
}

pub(super) fn many_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(many::<R>(scale.of(50_000)))
}

pub(super) fn many_in_main<R: Rival>(scale: Scale) -> Sample {
    R::block_on(many::<R>(scale.of(50_000)))
}

pub(super) fn from_outside<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(50_000);
    let left = Arc::new(AtomicUsize::new(operations));
    let (done, all_done) = std::sync::mpsc::channel();
    let start = Instant::now();
    for _ in 0..operations {
        let left = left.clone();
        let done = done.clone();
        R::detach(R::spawn(async move {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                done.send(()).expect("the measuring thread waits");
            }
        }));
    }
    all_done.recv().expect("the last task reports");
    Sample { elapsed: start.elapsed(), operations }
}

/// A request that fans out: each child sends its result to the parent, which waits for all.
pub(super) async fn fan_out<R: Rival>(children: usize, operations: usize) -> Sample {
    let rounds = operations.div_ceil(children);
    let start = Instant::now();
    for _ in 0..rounds {
        let (tell, told) = async_channel::unbounded();
        for number in 0..children {
            let tell = tell.clone();
            R::detach(R::spawn(async move { tell.send(number).await.expect("the parent listens") }));
        }
        drop(tell);
        let mut sum = 0;
        while let Ok(number) = told.recv().await {
            sum += number;
        }
        assert_eq!(sum, children * (children - 1) / 2);
    }
    Sample { elapsed: start.elapsed(), operations: rounds * children }
}

pub(super) fn fan_out_100<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(fan_out::<R>(100, scale.of(50_000)))
}

pub(super) fn fan_out_1000<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(fan_out::<R>(1_000, scale.of(50_000)))
}

pub(super) fn chain<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(50_000);
    R::block_on_worker(async move {
        let (done, all_done) = async_channel::bounded(1);
        let start = Instant::now();
        R::detach(R::spawn(link::<R>(operations, done)));
        all_done.recv().await.expect("the last link reports");
        Sample { elapsed: start.elapsed(), operations }
    })
}

/// A boxed future, since its type would otherwise contain itself.
fn link<R: Rival>(
    left: usize,
    done: async_channel::Sender<()>,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if left == 0 {
            done.send(()).await.expect("the measuring task waits");
        } else {
            R::detach(R::spawn(link::<R>(left - 1, done)));
        }
    })
}
