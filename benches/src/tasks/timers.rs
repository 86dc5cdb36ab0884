//! What is the cost of a timer that never fires?
//!
//! Hypothesis: most timers are timeouts, so arming and cancelling are the hot path; a tree behind a lock
//! needs a search for both, and a longer one with more timers.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;

use super::cases::{Sample, Scale};
use super::rivals::Rival;

const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn arm_and_cancel<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(200_000);
    R::block_on_worker(R::unbudgeted(async move {
        let start = Instant::now();
        for _ in 0..operations {
            let timer = pin!(R::timer(TIMEOUT));
            assert!(poll_once(timer).await.is_none());
        }
        Sample { elapsed: start.elapsed(), operations }
    }))
}

/// Deadlines one microsecond apart, so that all timers differ and none is due.
pub(super) fn held<R: Rival>(scale: Scale) -> Sample {
    let operations = scale.of(200_000);
    R::block_on_worker(R::unbudgeted(async move {
        let start = Instant::now();
        let mut timers: Box<[R::Timer]> =
            (0..operations).map(|number| R::timer(TIMEOUT + Duration::from_micros(number as u64))).collect();
        for timer in &mut timers {
            // SAFETY: the boxed slice is never moved out of or reordered; the timers are dropped in place.
            let timer = unsafe { Pin::new_unchecked(timer) };
            assert!(poll_once(timer).await.is_none());
        }
        drop(timers);
        Sample { elapsed: start.elapsed(), operations }
    }))
}
