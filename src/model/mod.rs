//! Scenarios of the whole pool: runtimes, deputies, users' threads, under shuttle's randomized scheduler.
//!
//! A scenario is a function that is a process of its own: it makes runtimes, starts threads (with the door's
//! [`thread::Builder`]), and asserts what it likes. [`explore`] runs it under many schedules, in each of which
//! - the clock is turned beside it, and when it has been turned `ticks` times it stands still: whoever then still waits is
//!   reported as a deadlock, by name (with a stack, if `SHUTTLE_CAPTURE_BACKTRACE` is set);
//! - nothing may be left in the end: threads, the default instance's deputy too, have to end by themselves;
//! - a [`fault`](sync::fault) or a panic of the scenario's own threads is a failure.
//!
//! What can run does so soon: a scenario says so with [`within`], in ticks, because what the deputy mends is not found by
//! asking whether it ends. In half of the runs ticks are so long that they hardly ever come while a thread has something to do, and
//! bounds hold to the tick; in the others, in which the deputy looks at threads in the middle of something, there is some [`leeway`].
//!
//! To replay a failure: take the number under "failing seed:" of the output, and
//! `SHUTTLE_RANDOM_SEED=<seed> PACELINE_SCHEDULES=1 cargo test ... <name> -- --exact --nocapture`. The seed is good for the
//! very code that it was found with: a step more or less, and it is another schedule (what is printed is no step). A scenario
//! that calls [`explore`] twice runs both with that seed. `RUST_BACKTRACE=0` keeps the output short, and
//! `PACELINE_LONGEST=1` prints how long what [`within`] measures took at worst.
//!
//! What scenarios may not use is what waits outside of shuttle: locks and channels of std's, `async-channel`, sleeping.
//! They use what [`stage`] has.

mod basics;
mod blocked;
mod deputies;
mod dismissed;
mod drains;
mod ends;
mod foreign;
mod guest;
mod mixed;
mod relief;
mod stage;
mod stuck;
mod two_pools;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

/// Runs each schedule twice: what a scenario does must depend on nothing else, or no failure could be replayed.
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
    /// Whether the clock lets others do all that there is to do. Then bounds in ticks can be tight.
    static SLOW: AtomicBool = AtomicBool::new(true);
}

/// How much longer than with a slow clock things may take.
pub(crate) fn leeway() -> u32 {
    if SLOW.load(Relaxed) { 1 } else { 3 }
}

process_static! {
    /// The run's pools. Std's lock: nobody takes a step under it.
    static POOLS: std::sync::Mutex<Vec<Weak<Pool>>> = std::sync::Mutex::default();
}

/// Has the run look in the end whether the pool is still there.
pub(crate) fn remember(pool: &Arc<Pool>) {
    POOLS.lock().expect("nobody panics under it").push(Arc::downgrade(pool));
}

fn run_once(ticks: u32, scenario: Arc<impl Fn() + Send + Sync + 'static>) {
    spawn("scenario", move || {
        scenario();
        Pool::end_default_instance().iter().for_each(remember);
    });
    let speed = if thread_rng().gen_bool(0.5) { Speed::Slow } else { Speed::Fast };
    SLOW.store(speed == Speed::Slow, Relaxed);
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

/// Time is over. Shuttle reports who waits.
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
