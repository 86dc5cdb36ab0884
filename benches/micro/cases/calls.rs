//! A call of `block_on`, for code that is not async and awaits now and then.
//!
//! Hypothesis: a future that is ready costs the change of the thread's state there and back; it allocates
//! nothing, and takes no lock. One that waits costs taking and leaving leadership on top of that.

use std::future::ready;
use std::hint::black_box;
use std::time::Duration;

use futures_lite::future::yield_now;
use paceline::{Handle, block_on};

use super::Rounds;

pub(super) fn ready_here(mut rounds: Rounds) -> Duration {
    for () in &mut rounds {
        block_on(ready(black_box(1)));
    }
    rounds.took()
}

pub(super) fn ready_by_handle(mut rounds: Rounds) -> Duration {
    let handle = Handle::current();
    for () in &mut rounds {
        handle.block_on(ready(black_box(1)));
    }
    rounds.took()
}

pub(super) fn yields_once(mut rounds: Rounds) -> Duration {
    for () in &mut rounds {
        block_on(yield_now());
    }
    rounds.took()
}
