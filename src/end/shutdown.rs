//! [`shut_down`]: a shutdown, which is the third step of a drain on the caller's thread, after a wait for the
//! workers.

use std::sync::Arc;

use super::conductor::Conductor;
use super::stuck::busy;
use crate::insight::StuckThread;
use crate::pool::{Crew, Pool};
use crate::sync::Instant;

/// Has all workers stop after the polls that they are in, waits for them until `deadline`, and cancels the
/// tasks, and the closures that block and have not begun. Ends the wait of a drain that is in progress.
/// Returns the workers that are still busy at the deadline; without a deadline, there are none. On a worker,
/// the call waits neither for that worker nor for others that are in such a call.
///
/// Destructors of cancelled tasks run on the workers and on a thread of their own, so a destructor that
/// blocks does not block the caller, unless no thread can be started. The call waits for these destructors
/// for at most ten seconds, after the deadline, too.
pub(crate) fn shut_down(pool: &Arc<Pool>, crew: &Arc<Crew>, deadline: Option<Instant>) -> Vec<StuckThread> {
    let (state, mut conductor) = (crew.state(), Conductor::new(crew, pool));
    // With recorded drops, a thread that drops one future after the other is seen to make progress.
    state.watch_drops();
    crew.parting.cut_short(state);
    conductor.halt();
    // A worker may wait in a foreign `block_on` for a closure that is dropped here.
    if pool.blocking().doomed() > 0 {
        conductor.hire_hand();
    }
    let late = crew.wait_for_the_others(deadline);
    // The tasks of a late worker do not keep the others: a task that runs is cancelled when its poll ends.
    if state.census().1 > 0 {
        conductor.hire_hand();
    } else {
        crew.cancel_all(pool);
    }
    conductor.wait_for_hands();
    late.map_or(Vec::new(), |late| busy(pool, &late))
}
