//! Scenarios of the whole pool: runtimes, deputies, users' threads, under shuttle's randomized scheduler.
//!
//! A scenario is a function that acts like a process of its own: it makes runtimes, starts threads (with the
//! [`thread::Builder`] of `sync`), and asserts what it expects. [`explore`] runs it under many schedules, in
//! each of which
//! - a thread advances the clock, at most `ticks` times. After that each thread that still waits is reported
//!   as a deadlock, by name (with a stack, if `SHUTTLE_CAPTURE_BACKTRACE` is set);
//! - no thread may be left in the end: all threads, the default instance's deputy too, have to end by
//!   themselves;
//! - a [`fault`](sync::fault) or a panic of the scenario's own threads is a failure.
//!
//! A scenario asserts with [`within`] how many ticks an operation takes at most. An assertion that the
//! operation ends would not be enough: the deputy makes it end in any case, only later. In half of the runs
//! ticks are so long that the clock hardly ever advances while a thread has something to do. In the other
//! runs they are short, and the deputy looks at threads in the middle of something. The bounds are the same:
//! ticks that pass while threads work count by the work done in them ([`SlowTicks`](clock::SlowTicks)).
//!
//! To replay a failure: take the number under "failing seed:" of the output, and `SHUTTLE_RANDOM_SEED=<seed>
//! PACELINE_SCHEDULES=1 cargo test ... <name> -- --exact --nocapture`. The seed is valid only for the code
//! with which it was found: a step more or less gives another schedule (printing is not a step). A scenario
//! that calls [`explore`] twice runs both with that seed. `RUST_BACKTRACE=0` keeps the output short, and
//! `PACELINE_LONGEST=1` prints the longest time that each [`within`] measured.
//!
//! Scenarios must not wait outside of shuttle: no locks and channels of std, no `async-channel`, no sleep.
//! [`stage`] has replacements.

mod added_threads;
mod basics;
mod blocked;
mod computing;
mod deputies;
mod dismissed;
mod drains;
mod ends;
mod fairness;
mod foreign;
mod guest;
mod mixed;
mod relief;
mod shares;
mod simulation;
mod stage;
mod stuck;
mod two_pools;

use std::sync::{Arc, Weak};

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{RandomScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler};
use shuttle::{Config, FailurePersistence, Runner};

use crate::pool::Pool;
use crate::sync::clock::{self, Speed};
use crate::sync::{self, process_static, thread};
pub(crate) use stage::{Latch, Pace, Reader, foreign_block_on, runtime, sleep, ticks, within, yields};

/// Schedules of each scenario, if `PACELINE_SCHEDULES` does not say.
const SCHEDULES: usize = 1_000;

/// Runs `scenario` under many schedules, none of which takes more than `ticks` of the clock's.
#[track_caller]
pub(crate) fn explore(ticks: u32, scenario: impl Fn() + Send + Sync + 'static) {
    explore_with(RandomScheduler::new(schedules()), ticks, scenario);
}

/// Runs each schedule twice: a scenario must depend only on its schedule, otherwise no failure could be
/// replayed.
#[track_caller]
pub(crate) fn explore_twice(ticks: u32, scenario: impl Fn() + Send + Sync + 'static) {
    let scheduler = RandomScheduler::new(schedules());
    explore_with(UncontrolledNondeterminismCheckScheduler::new(scheduler), ticks, scenario);
}

fn schedules() -> usize {
    match std::env::var("PACELINE_SCHEDULES") {
        Ok(number) => number.parse().expect("PACELINE_SCHEDULES is a number"),
        Err(_) => SCHEDULES,
    }
}

#[track_caller]
fn explore_with(
    scheduler: impl Scheduler + 'static,
    ticks: u32,
    scenario: impl Fn() + Send + Sync + 'static,
) {
    let mut config = Config::new();
    // The seed is enough to replay a run, and fits on a line.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config.stack_size = 0x4_0000;
    let scenario = Arc::new(scenario);
    Runner::new(scheduler, config).run(move || run_once(ticks, scenario.clone()));
}

process_static! {
    /// The pools of the run. A lock of std will do: no thread takes a step under it.
    static POOLS: std::sync::Mutex<Vec<Weak<Pool>>> = std::sync::Mutex::default();
}

/// Has the run look in the end whether the pool is still there.
pub(crate) fn remember(pool: &Arc<Pool>) {
    POOLS.lock().expect("nobody panics under it").push(Arc::downgrade(pool));
}

fn run_once(ticks: u32, scenario: Arc<impl Fn() + Send + Sync + 'static>) {
    spawn("scenario", move || {
        scenario();
        if let Some(pool) = Pool::end_default_instance() {
            remember(&pool);
        }
    });
    let speed = if thread_rng().gen_bool(0.5) { Speed::Slow } else { Speed::Fast };
    let mut turned = 0;
    while thread::alive() > 0 {
        if turned == ticks {
            stand_still(ticks);
        }
        clock::tick(speed);
        turned += 1;
    }
    assert_eq!(sync::reported_fault(), None);
    let pools = POOLS.lock().expect("nobody panics under it");
    assert!(pools.iter().all(|pool| pool.strong_count() == 0), "a pool is left, and nobody is in it");
}

/// Stops the clock. Shuttle then reports the threads that wait.
fn stand_still(ticks: u32) -> ! {
    assert_eq!(sync::reported_fault(), None);
    eprintln!("after {ticks} ticks {} threads have not ended; the clock stands still", thread::alive());
    loop {
        thread::park();
    }
}

/// Starts a thread of the scenario's own.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::Builder::new().name(name.into()).spawn(body).expect("a scenario's threads start")
}
