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

use super::{Pool, Station, block_on};
use crate::leadership::Seat;
use crate::line::Rank;
use crate::sync::{self, thread};
use crate::waking;

/// How long a relief stays parked.
const LINGER: Duration = Duration::from_secs(1);

/// Reliefs at most, as many as have been blocked by wakers.
const MOST: usize = 256;

/// Starts one; where no thread is to be had, the calling thread takes the events that are there.
pub(super) fn start(pool: &Arc<Pool>) {
    if pool.reliefs.add() < MOST {
        let here = pool.clone();
        let relief = thread::Builder::new().name("paceline-relief".into());
        if relief.spawn(move || lead(&here)).is_ok() {
            return;
        }
    }
    pool.reliefs.remove();
    take_turn(pool);
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
    pool.reliefs.remove();
}

/// Takes the events that nobody else takes, without waiting: the last resort of a deputy that gets no thread. False if
/// somebody leads.
pub(super) fn take_turn(pool: &Arc<Pool>) -> bool {
    let seat = sync::Arc::new(Seat::new(Rank::Relief));
    let follower = pool.leadership.join(seat);
    let Ok(mut leader) = follower.insist() else { return false };
    let mut events = Vec::new();
    leader.with(|batch| {
        // What somebody fetched and had no time to take comes first.
        if batch.left() == 0 {
            // An error here is one that the next regular leader meets as well.
            let _ = batch.look(&pool.reactor);
        }
        events.extend(std::iter::from_fn(|| batch.next(&pool.reactor)));
    });
    let follower = leader.vacate();
    for event in events {
        pool.visit(|| waking::discard(pool.reactor.fire(event)));
    }
    drop(follower);
    true
}
