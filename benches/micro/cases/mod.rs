//! Micro-benchmarks: what is the cost of each step of the hot paths, and did a change increase it?
//!
//! Each case is written once and measured twice. `statistics.rs` measures its time with a statistical
//! harness, which includes caches and the kernel, but also disturbances by other programs. `instructions.rs`
//! counts its instructions with callgrind, without caches and the kernel, but with the same result each time,
//! so that a gate can rely on it.
//!
//! Hypothesis: on one thread the count repeats exactly, since only the program decides what comes next. So
//! most cases run on the measuring thread: a worker, too, is an [`Executor`] in `block_on`.
//!
//! - The counts of all cases on one thread but `sleep` repeat within 0.1 %.
//! - Those of `sleep` and `runtime-*` repeat within 0.3 %: the deadlines of `sleep` fall into other places of
//!   the wheel each time, and `main` sleeps while the only worker of `runtime-*` works.
//! - In `promote` and `park` threads wake each other: the scheduler decides whether the other thread already
//!   sleeps, and then waking it costs other instructions. Their counts differ by 3 % and 25 %, so these cases
//!   are only timed.

mod calls;
mod events;
mod tasks;
mod threads;
mod timers;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use futures_lite::future::yield_now;
use paceline::{Executor, block_on};

/// One operation, and a function that repeats it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// The name in tables and on the command line.
    pub(crate) name: &'static str,
    /// What the case measures.
    pub(crate) operation: &'static str,
    /// How many operations to count instructions over; `None` if the count does not repeat.
    pub(crate) counted: Option<u64>,
    run: fn(Rounds) -> Duration,
}

impl Case {
    /// Sets up, then does so many operations, and returns the time of the operations.
    pub(crate) fn run(&self, operations: u64) -> Duration {
        (self.run)(Rounds::new(operations))
    }
}

/// All cases, in the order of the tables.
pub(crate) const ALL: &[Case] = &[
    counted("slot", "two tasks wake each other: two wakes, two direct polls", tasks::slot),
    counted("surplus", "a task wakes four others: one direct poll, three from the ring", tasks::surplus),
    counted("wake-scheduled", "wake a task that is to be polled already", tasks::wake_scheduled),
    counted("wake-outside", "wake a task on a thread without a runner, and try_tick", tasks::wake_outside),
    counted("yield", "one task yields", tasks::yield_once),
    counted("spawn", "spawn and await, inside a task", tasks::spawn),
    counted("spawn-detached", "spawn and detach, inside a task, and yield to it", tasks::spawn_detached),
    counted("timer-cancel", "arm a timer, poll it once, drop it", timers::cancel),
    counted("timer-rearm", "set an armed timer anew and poll it", timers::rearm),
    counted("timer-fire", "an interval fires at the next look and is set anew", timers::fire),
    counted("call-ready", "block_on of a future that is ready", calls::ready_here),
    counted("call-handle", "the same by Handle::block_on", calls::ready_by_handle),
    counted("call-yield", "block_on of a future that yields once", calls::yields_once),
    counted("lead", "an event for block_on's own future: lead, look, vacate, fire", events::lead),
    counted("event", "a byte there and back between two tasks: two events", events::exchange),
    counted("event-batch", "one of 16 events at once, for 16 tasks: a byte is read", events::batch),
    Case {
        counted: Some(1_000),
        ..timed("sleep", "sleep in the poller until a timer is due", timers::sleep)
    },
    counted("runtime-spawn", "spawn and await on a runtime's only worker", threads::spawn),
    counted("runtime-event", "the two events on a runtime's only worker", threads::exchange),
    timed("park", "main awaits a task: two threads park and are unparked", threads::park),
    timed("promote", "two events, one beside the task that blocks: a follower is promoted", threads::promote),
];

const fn timed(name: &'static str, operation: &'static str, run: fn(Rounds) -> Duration) -> Case {
    Case { name, operation, counted: None, run }
}

/// Has so many operations that differences between starts do not matter.
const fn counted(name: &'static str, operation: &'static str, run: fn(Rounds) -> Duration) -> Case {
    Case { counted: Some(20_000), ..timed(name, operation, run) }
}

/// Repetitions before the clock starts: enough for what is allocated once.
const WARM_UP: u64 = 100;

/// The repetitions of an operation, after a warm-up: `for () in &mut rounds { .. }`.
#[derive(Debug)]
struct Rounds {
    operations: u64,
    left: u64,
    start: Instant,
}

impl Rounds {
    fn new(operations: u64) -> Self {
        Self { operations, left: WARM_UP + operations, start: Instant::now() }
    }

    /// Returns the time of the repetitions, without the warm-up.
    fn took(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Iterator for Rounds {
    type Item = ();

    #[inline]
    fn next(&mut self) -> Option<()> {
        if self.left == self.operations {
            self.start = Instant::now();
        }
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}

/// Runs a future as a task of an executor on this thread; starts no other thread.
fn in_task<F>(future: impl FnOnce(Arc<Executor<'static>>) -> F) -> Duration
where
    F: Future<Output = Duration> + Send + 'static,
{
    let executor = Arc::new(Executor::new());
    let task = executor.spawn(future(executor.clone()));
    block_on(async {
        // `block_on` enters a pool only when its future has to wait; a worker has entered one from the start.
        yield_now().await;
        executor.run(task).await
    })
}

/// Returns the waker of this task.
async fn own_waker() -> Waker {
    poll_fn(|cx| Poll::Ready(cx.waker().clone())).await
}

/// Waits until this task is woken.
async fn woken() {
    let mut asleep = false;
    poll_fn(|_| if std::mem::replace(&mut asleep, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}
