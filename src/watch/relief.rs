//! A relief: a thread that leads because no other thread does.
//!
//! The deputy starts one if all threads of the pool are stuck, or if the pool has no threads, because its
//! sources and timers are awaited under another library's `block_on`. A relief has the lowest rank: a thread
//! of any other rank takes leadership from it at once, and the relief parks. The relief ends after it has
//! been parked for a second, or when it finds that no source and no timer is registered any more. If a waker
//! blocks a relief, leadership is vacant as with any other thread, and the deputy starts the next one.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::blocking_threads::LINGER;
use crate::leadership::Rank;
use crate::pool::block_on::{PoolSource, drive};
use crate::pool::{Pool, Station};
use crate::sync::{Ordering, thread};
use crate::waking;

/// Counts a relief for as long as it lives.
struct Counted(Arc<Pool>);

impl Drop for Counted {
    fn drop(&mut self) {
        // ORDER: Relaxed, here and below: the number orders no other access.
        self.0.reliefs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts a relief. Returns false if no thread can be started: then events wait until one can be.
pub(super) fn start(pool: &Arc<Pool>) -> bool {
    pool.reliefs.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(pool.clone());
    thread::Builder::new().name("paceline-relief".into()).spawn(move || lead(&counted)).is_ok()
}

/// Runs the relief's thread, until no source and no timer is registered, the pool has ended, or it was parked
/// for [`LINGER`].
fn lead(counted: &Counted) {
    let pool = &counted.0;
    // The deputy wakes the relief when the last source or timer is gone.
    let needed = poll_fn(|_| {
        if pool.reactor.is_needed() && !pool.ended.is_set() { Poll::Pending } else { Poll::Ready(()) }
    });
    let station = Arc::new(Station::with(Rank::Relief, Some(LINGER)));
    // A panic here is a defect of ours, because a waker's panic ends at the call of the waker. The deputy
    // notices that leadership is vacant, and starts the next relief.
    waking::catch(|| drive(PoolSource::Given(pool.clone()), station, needed));
}
