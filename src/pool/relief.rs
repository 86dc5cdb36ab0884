//! A relief: a thread that leads because nobody else does.
//!
//! All threads of the pool are stuck, or it has none and what is waited for is waited for under somebody else's
//! `block_on`. The relief is a member of the lowest rank: whoever else comes to lead has its place at once, and it parks.
//! If nobody is to be relieved for a second, or nothing is registered any more, it ends. A waker that blocks it is noticed as in
//! any other thread: leadership is vacant, and the deputy starts the next one.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::{Pool, Station};
use crate::block_on;
use crate::sync::{Ordering, thread};

/// How long a relief stays parked.
const LINGER: Duration = Duration::from_secs(1);

/// Reliefs at most, as many as have been blocked by wakers.
const MOST: usize = 256;

/// Starts one; where no thread is to be had, the calling thread takes the events that are there.
pub(super) fn start(pool: &Arc<Pool>) {
    if pool.reliefs.fetch_add(1, Ordering::Relaxed) < MOST {
        let here = pool.clone();
        let relief = thread::Builder::new().name("paceline-relief".into());
        if relief.spawn(move || lead(&here)).is_ok() {
            return;
        }
    }
    pool.reliefs.fetch_sub(1, Ordering::Relaxed);
    block_on::take_turn(pool);
}

/// The thread's life.
fn lead(pool: &Arc<Pool>) {
    // The deputy tells us when the last source or timer is gone.
    let needed =
        poll_fn(
            |_| if pool.reactor.is_needed() && !pool.is_ended() { Poll::Pending } else { Poll::Ready(()) },
        );
    let station = Arc::new(Station::relief(LINGER));
    // What panics here is a defect of ours, for a waker's panic ends in the waker: the deputy notices that nobody leads.
    let _ = catch_unwind(AssertUnwindSafe(|| block_on::drive(Some(pool), station, needed)));
    pool.reliefs.fetch_sub(1, Ordering::Relaxed);
}
