//! [`StuckThread`]: a worker that did not stop in time, and the task that keeps it.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::{Crew, Pool, Station};
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
    let task_of = |station: &Arc<Station>| station.at().culprit.filter(|culprit| !culprit.is_root)?.place;
    let stuck = late.iter().map(|thread| {
        // The innermost `block_on` first.
        let mut its_stations = stations.iter().rev().filter(|station| station.thread.id() == thread.id());
        let spawned_at = its_stations.find_map(task_of);
        StuckThread { spawned_at, name: thread.name().map(Into::into), id: thread.id() }
    });
    stuck.collect()
}

/// A task that a thread polls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polled {
    pub(super) spawned_at: Option<&'static Location<'static>>,
    /// What tells it from others, and which of its runner's polls it is.
    pub(super) id: usize,
    pub(super) poll: u64,
}

/// The crew's tasks that are polled at these stations: more than one where one waits for another on top of it.
pub(super) fn tasks_of<'a>(crew: &Crew, stations: impl Iterator<Item = &'a Arc<Station>>) -> Vec<Polled> {
    let mut tasks = Vec::new();
    for station in stations {
        for hosted in station.runners.lock().iter().filter(|hosted| crew.runs(&hosted.state)) {
            let beat = hosted.runner.beat();
            if beat.is_in_task() {
                let (spawned_at, id) = (hosted.runner.spawned_at(), hosted.runner.task());
                tasks.push(Polled { spawned_at, id, poll: beat.count() });
            }
        }
    }
    tasks
}

/// Threads that are stuck when a runtime ends, and how many tasks keep them.
#[derive(Debug, Default)]
pub(super) struct StuckTasks {
    pub(super) threads: Vec<StuckThread>,
    /// But those that wait for the report.
    pub(super) tasks: usize,
}

impl StuckTasks {
    /// A thread is stuck in these tasks, the innermost first, and in the drop of what was spawned there.
    pub(super) fn add(
        &mut self,
        thread: &thread::Thread,
        mut tasks: Vec<Polled>,
        dropped: Vec<&'static Location<'static>>,
        awaits: impl Fn(usize) -> bool,
    ) {
        match tasks.first_mut() {
            // It drops what it polls: a task that is done, or was cancelled. Of the latter the runner knows nothing.
            Some(innermost) if !dropped.is_empty() => {
                *innermost = Polled { spawned_at: dropped.first().copied(), id: 0, poll: 0 };
            }
            Some(_) => {}
            None => {
                tasks.extend(dropped.into_iter().map(|at| Polled { spawned_at: Some(at), id: 0, poll: 0 }));
            }
        }
        self.tasks += tasks.iter().filter(|task| !awaits(task.id)).count();
        let places = tasks.iter().map(|task| task.spawned_at);
        // Something else keeps it.
        let places = places.chain(tasks.is_empty().then_some(None));
        let (name, id) = (thread.name().map(String::from), thread.id());
        self.threads.extend(places.map(|spawned_at| StuckThread { spawned_at, name: name.clone(), id }));
    }
}
