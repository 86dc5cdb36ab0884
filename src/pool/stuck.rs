//! [`StuckThread`]: a worker that did not stop in time, and the task that keeps it.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::{Pool, Station};
use crate::sync::thread;

/// A worker that did not stop in time: see [`StuckError`](crate::StuckError).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StuckThread {
    /// Where the task was spawned that keeps it; `None` if something else does, such as its hook or a destructor.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The name of the thread, if it has one.
    pub name: Option<String>,
    /// The thread.
    pub id: thread::ThreadId,
}

impl fmt::Display for StuckThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("(unnamed)"))?;
        self.spawned_at.map_or(Ok(()), |at| write!(f, " (spawned at {at})"))
    }
}

/// What keeps the threads `late`. One that is in its hook, or that cancels tasks, has no station.
pub(super) fn busy(pool: &Pool, late: &[thread::Thread]) -> Vec<StuckThread> {
    let stations = pool.stations();
    let task_of = |station: &Arc<Station>| {
        let hosted = station.runners.lock();
        let mut polling = hosted.iter().filter(|hosted| hosted.runner.beat().is_in_task());
        polling.find_map(|hosted| hosted.runner.spawned_at())
    };
    let stuck = late.iter().map(|thread| {
        // The innermost `block_on` first.
        let mut its_stations = stations.iter().rev().filter(|station| station.thread.id() == thread.id());
        let spawned_at = its_stations.find_map(task_of);
        StuckThread { spawned_at, name: thread.name().map(Into::into), id: thread.id() }
    });
    stuck.collect()
}
