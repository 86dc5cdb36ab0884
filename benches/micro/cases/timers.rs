//! Timers that never fire, and timers that fire.
//!
//! Hypothesis: most timers are timeouts, so arming and cancelling are a few instructions on the wheel's
//! lists; a timer that fires costs a reading of the clock by the leader and an event of its own.

use std::pin::pin;
use std::time::Duration;

use futures_lite::StreamExt;
use futures_lite::future::poll_once;
use paceline::Timer;

use super::{Rounds, in_task, woken};

const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn cancel(mut rounds: Rounds) -> Duration {
    in_task(|_| async move {
        for () in &mut rounds {
            let timer = pin!(Timer::after(TIMEOUT));
            assert!(poll_once(timer).await.is_none());
        }
        rounds.took()
    })
}

pub(super) fn rearm(mut rounds: Rounds) -> Duration {
    in_task(|_| async move {
        let mut timer = Timer::after(TIMEOUT);
        for () in &mut rounds {
            timer.set_after(TIMEOUT);
            assert!(poll_once(&mut timer).await.is_none());
        }
        rounds.took()
    })
}

/// The period is so short that the next deadline has passed before this task waits for it. Most of the time
/// is the kernel's: its clock interrupts the processor all the same.
pub(super) fn fire(mut rounds: Rounds) -> Duration {
    in_task(|_| async move {
        let mut timer = Timer::interval(Duration::from_nanos(1));
        for () in &mut rounds {
            timer.next().await;
            woken().await;
        }
        rounds.took()
    })
}

/// The deadline is far enough ahead that the leader sleeps before it, also on a busy machine, and too far to
/// spin for.
pub(super) fn sleep(mut rounds: Rounds) -> Duration {
    in_task(|_| async move {
        for () in &mut rounds {
            Timer::after(Duration::from_millis(1)).await;
        }
        rounds.took()
    })
}
