//! Does the cost of one operation grow with the number of tasks or timers?
//!
//! Hypothesis: flat until the caches are full; a tree of timers grows with its depth, a wheel does not.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;

use super::cases::Sample;
use super::rivals::Rival;
use super::spawns;

pub(super) struct SizedCase {
    pub(super) name: &'static str,
    pub(super) operation: &'static str,
    pub(super) sizes: &'static [usize],
    pub(super) run: fn(usize) -> Sample,
}

const SIZES: &[usize] = &[10, 100, 1_000, 10_000, 100_000];
/// The fan-out of a request.
const SMALL_SIZES: &[usize] = &[10, 100, 1_000];

/// Small batches are repeated, so that a run is long compared with the clock's resolution and with one wake.
const OPERATIONS: usize = 20_000;

pub(super) fn sized_cases<R: Rival>() -> Vec<SizedCase> {
    let case = |name, operation, sizes, run| SizedCase { name, operation, sizes, run };
    vec![
        case("spawn-of", "spawn N tasks, await all, per task", SIZES, spawn_of::<R>),
        case("fan-out-to", "spawn N that report to the parent, per child", SMALL_SIZES, fan_out_to::<R>),
        case("timer-beside", "arm and cancel a timer beside N held ones", SIZES, arm_and_cancel_beside::<R>),
    ]
}

fn spawn_of<R: Rival>(size: usize) -> Sample {
    R::block_on_worker(async move {
        let mut sum = Sample { elapsed: Duration::ZERO, operations: 0 };
        while sum.operations < OPERATIONS {
            let batch = spawns::many::<R>(size).await;
            sum.elapsed += batch.elapsed;
            sum.operations += batch.operations;
        }
        sum
    })
}

fn fan_out_to<R: Rival>(children: usize) -> Sample {
    R::block_on_worker(spawns::fan_out::<R>(children, OPERATIONS))
}

fn arm_and_cancel_beside<R: Rival>(held: usize) -> Sample {
    R::block_on_worker(R::unbudgeted(async move {
        let after = |number: usize| Duration::from_secs(10) + Duration::from_micros(number as u64 * 50);
        let mut timers: Box<[R::Timer]> = (0..held).map(|number| R::timer(after(number))).collect();
        for timer in &mut timers {
            // SAFETY: the boxed slice is never moved out of or reordered; the timers are dropped in place.
            let timer = unsafe { Pin::new_unchecked(timer) };
            assert!(poll_once(timer).await.is_none());
        }
        let start = Instant::now();
        for number in 0..OPERATIONS {
            let timer = pin!(R::timer(after(number * 7_919 % held)));
            assert!(poll_once(timer).await.is_none());
        }
        Sample { elapsed: start.elapsed(), operations: OPERATIONS }
    }))
}
