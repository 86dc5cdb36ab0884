//! What is the cost of state that several tasks use?
//!
//! Hypothesis: alone, a strand costs as much as `std::sync::Mutex`, an exchange to enter and one to leave.
//! With contention it costs a queue operation and a wake for each operation that meets another one; but then
//! the woken task runs on the same thread as the other one, so the two seldom meet again.
//!
//! All cases run on paceline's runtime: runtimes are not compared here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use paceline::Strand;

use super::cases::{Sample, Scale};
use super::rivals::{Paceline, Rival};

const TASKS: usize = 8;

/// A number that several tasks increment.
trait Shared: Clone + Send + Sync + 'static {
    fn new() -> Self;
    fn add(&self) -> impl Future<Output = ()> + Send;
    fn sum(&self) -> impl Future<Output = usize> + Send;
}

impl Shared for Strand<usize> {
    fn new() -> Self {
        Self::new(0)
    }
    async fn add(&self) {
        self.with(|sum| *sum += 1).await;
    }
    async fn sum(&self) -> usize {
        self.with(|sum| *sum).await
    }
}

impl Shared for Arc<Mutex<usize>> {
    fn new() -> Self {
        Self::default()
    }
    async fn add(&self) {
        *self.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
    async fn sum(&self) -> usize {
        *self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared for Arc<async_lock::Mutex<usize>> {
    fn new() -> Self {
        Self::default()
    }
    async fn add(&self) {
        *self.lock().await += 1;
    }
    async fn sum(&self) -> usize {
        *self.lock().await
    }
}

/// A strand used by `post`.
#[derive(Clone)]
struct Posts(Strand<usize>);

impl Shared for Posts {
    fn new() -> Self {
        Self(Strand::new(0))
    }
    async fn add(&self) {
        self.0.post(|sum| *sum += 1);
    }
    async fn sum(&self) -> usize {
        self.0.sum().await
    }
}

async fn count_up<S: Shared>(tasks: usize, each: usize) -> Sample {
    let shared = S::new();
    let start = Instant::now();
    let counting: Vec<_> = (0..tasks)
        .map(|_| {
            let shared = shared.clone();
            Paceline::spawn(async move {
                for _ in 0..each {
                    shared.add().await;
                }
            })
        })
        .collect();
    for task in counting {
        task.await;
    }
    let elapsed = start.elapsed();
    assert_eq!(shared.sum().await, tasks * each, "increments were lost");
    Sample { elapsed, operations: tasks * each }
}

fn alone<S: Shared>(scale: Scale) -> Sample {
    Paceline::block_on_worker(count_up::<S>(1, scale.of(1_000_000)))
}

fn contended<S: Shared>(scale: Scale) -> Sample {
    Paceline::block_on_worker(count_up::<S>(TASKS, scale.of(1_000_000)))
}

/// A case, with a function for each contestant.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) operation: &'static str,
    pub(super) runs: [fn(Scale) -> Sample; 4],
}

pub(super) const CONTESTANTS: [&str; 4] = ["Mutex", "async_lock", "strand", "post"];

type Locked = Arc<Mutex<usize>>;
type AsyncLocked = Arc<async_lock::Mutex<usize>>;

pub(super) const CASES: [Case; 2] = [
    Case {
        name: "serial-alone",
        operation: "one increment, a task alone",
        runs: [alone::<Locked>, alone::<AsyncLocked>, alone::<Strand<usize>>, alone::<Posts>],
    },
    Case {
        name: "serial-8",
        operation: "one increment, 8 tasks of 1 000 000 each",
        runs: [contended::<Locked>, contended::<AsyncLocked>, contended::<Strand<usize>>, contended::<Posts>],
    },
];
