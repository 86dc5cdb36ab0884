//! How a runtime ends: what may finish does, what may not is cancelled, and all callers get one report.
//!
//! A thread of its own conducts the end ([`conductor`]), however many callers ask and from whatever role.
//! Until the report is published that thread runs no user code, so no blocking code can delay it,
//! unless the system has no thread for the helper. It parks until the last task ends, which unparks it
//! (`executor/vigil.rs`), or the last closure that [blocks](crate::blocking), or until the deadline: so it
//! needs neither a worker nor the reactor.
//!
//! 1. *Closed*: new tasks from outside are cancelled at once.
//! 2. *The wait*: until no task is left but those that wait for this very report, and no closure that
//!    blocks; or until the deadline.
//! 3. *The cancel*: the workers stop after the polls they are in, and drop all tasks that no thread polls. If
//!    any are left, one more thread, the helper, drops them beside the workers. Closures that block and have
//!    not begun never run; closures that run are told. This step is over when only stuck threads are left
//!    ([`Witness`](crate::probe::Witness)).
//! 4. *The report* is published, and all callers that wait for it are woken.
//!
//! A shutdown, or a drop, is a drain whose deadline is now. Its caller stops the workers itself, and waits
//! for them and the report for as long as it is told.
//!
//! `pool/parting.rs` has the phases of the end, the callers that wait for the report, and the report.
//! `pool/clearing.rs` has what the crew's threads do for it.

mod conductor;

use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;

use crate::insight::{DrainReport, StuckThread};
use crate::pool::{Crew, Pool};
use crate::sync::Instant;
use conductor::{Conductor, entries, start_conductor, tasks_of};

/// Ends the pool's crew, and the closures that block for it, and returns the report. Without a `deadline`,
/// the end waits for all tasks. The first poll begins the end, which goes on if this future is dropped.
///
/// # Panics
///
/// As [`task_here`] does; at the first poll, that has no effect. If no thread can be started for the
/// conductor: then tasks are not accepted any more, and no others are cancelled.
pub(crate) async fn drain(pool: &Arc<Pool>, crew: &Arc<Crew>, deadline: Option<Instant>) -> DrainReport {
    task_here(pool, crew);
    let caller = Caller { crew, key: crew.parting.enter(&crew.state, deadline) };
    if let Err(error) = crew.parting.conduct(|| start_conductor(crew, pool)) {
        panic!("a drain needs a thread, and none can be started: {error}");
    }
    poll_fn(|cx| {
        let task = task_here(pool, crew);
        crew.parting.poll_report(&crew.state, caller.key, task, cx.waker().clone())
    })
    .await
}

/// Ends the pool's crew without a wait for its tasks: has all workers stop after the polls that they are in,
/// and cancels the tasks, and the closures that block and have not begun. Waits until that is done, for the
/// time `until` at most. Returns the threads that are not gone by then. On a thread of the crew, or in one of
/// its tasks, the call waits for nothing, and returns none.
///
/// In a simulation, which is on one thread, and if no thread can be started for the conductor, the calling
/// thread conducts the end.
pub(crate) fn shut_down(pool: &Arc<Pool>, crew: &Arc<Crew>, until: Option<Instant>) -> Vec<StuckThread> {
    crew.parting.enter(&crew.state, Some(Instant::now()));
    crew.halt();
    let (is_here, mut conducts) = (crew.is_here(), false);
    let _ = crew.parting.conduct(|| {
        let is_alone = pool.reactor.is_simulated();
        let started = if is_alone { Err(ErrorKind::Unsupported.into()) } else { start_conductor(crew, pool) };
        conducts = started.is_err() && !is_here;
        if conducts { Ok(()) } else { started }
    });
    if is_here {
        return Vec::new();
    }
    if conducts {
        Conductor::new(crew, pool).conduct();
    }
    crew.wait_for_all(until);
    let (late, stations) = (crew.running(), pool.stations());
    let stuck = late.iter().flat_map(|(thread, _)| {
        let its_stations = stations.iter().rev().filter(|station| station.thread.id() == thread.id());
        entries(thread, &tasks_of(crew, its_stations)).collect::<Vec<_>>()
    });
    stuck.collect()
}

/// A caller that waits for the report, until this is dropped.
struct Caller<'a> {
    crew: &'a Crew,
    key: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.crew.parting.leave(&self.crew.state, self.key);
    }
}

/// Returns the address of the crew's task that the caller is in, if any.
///
/// # Panics
///
/// If the report is not out, and the caller is a closure that [blocks](crate::blocking) for this crew's
/// runtime: the end waits for it.
#[track_caller]
fn task_here(pool: &Arc<Pool>, crew: &Crew) -> Option<usize> {
    assert!(
        crew.parting.is_reported() || !pool.blocking().is_at_work_here(),
        "`drain` waits for this runtime's closures that block, so none of them can wait for it: await the drain in a \
         `block_on` of a thread that is not the runtime's"
    );
    crew.state.task_here()
}
