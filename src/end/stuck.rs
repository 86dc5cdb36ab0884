//! Which threads are stuck, and in which tasks.

use std::panic::Location;
use std::sync::Arc;

use crate::executor::TaskPoll;
use crate::insight::StuckThread;
use crate::pool::{Crew, Pool, Station};
use crate::sync::thread;

/// Returns the threads `late`, each with the innermost task that it polls. A thread that is in a hook, or
/// that cancels tasks, is in no such task.
pub(super) fn busy(pool: &Pool, late: &[thread::Thread]) -> Vec<StuckThread> {
    let stations = pool.stations();
    let task_of =
        |station: &Arc<Station>| station.activity().culprit.filter(|culprit| !culprit.is_root)?.place;
    let stuck = late.iter().map(|thread| {
        // The innermost `block_on` first.
        let mut its_stations = stations.iter().rev().filter(|station| station.thread.id() == thread.id());
        let spawned_at = its_stations.find_map(task_of);
        StuckThread { spawned_at, name: thread.name().map(Into::into), id: thread.id() }
    });
    stuck.collect()
}

/// Returns the crew's tasks that are polled at these stations: in a runtime of the current thread several, if
/// a task waits in a nested `block_on` on top of which others are polled. Foreign tasks are not counted, and
/// so not among them.
pub(super) fn tasks_of<'a>(crew: &Crew, stations: impl Iterator<Item = &'a Arc<Station>>) -> Vec<TaskPoll> {
    let mut tasks = Vec::new();
    for station in stations {
        let hosted = station.runners.lock();
        let own = hosted.iter().filter(|hosted| crew.runs(&hosted.state));
        let polls = own.filter_map(|hosted| hosted.runner.task_poll());
        tasks.extend(polls.filter(|poll| poll.spawned_at.is_some()));
    }
    tasks
}

/// The threads that are stuck when a runtime ends, and the number of tasks that keep them.
#[derive(Debug, Default)]
pub(super) struct StuckTasks {
    pub(super) threads: Vec<StuckThread>,
    pub(super) tasks: usize,
}

impl StuckTasks {
    /// Adds a thread that is stuck in these tasks, the innermost first, and in the drop of tasks that were
    /// spawned at `dropped`. A thread that polls tasks gets one entry for each, and that of the innermost
    /// names the task that is dropped instead, if there is one. Otherwise there is one entry for each
    /// dropped task, or one without a task.
    pub(super) fn add(
        &mut self,
        thread: &thread::Thread,
        mut tasks: Vec<TaskPoll>,
        dropped: Vec<&'static Location<'static>>,
    ) {
        match tasks.first_mut() {
            // The thread drops the task that it polls, which is done or was cancelled; or another one, of
            // which the runner knows nothing.
            Some(innermost) if !dropped.is_empty() => {
                *innermost = TaskPoll { spawned_at: dropped.first().copied(), ..TaskPoll::default() };
            }
            Some(_) => {}
            None => {
                let polls =
                    dropped.into_iter().map(|at| TaskPoll { spawned_at: Some(at), ..TaskPoll::default() });
                tasks.extend(polls);
            }
        }
        self.tasks += tasks.len();
        let places = tasks.iter().map(|task| task.spawned_at);
        // No task keeps the thread: user code that is none does, such as a hook.
        let places = places.chain(tasks.is_empty().then_some(None));
        let (name, id) = (thread.name().map(String::from), thread.id());
        self.threads.extend(places.map(|spawned_at| StuckThread { spawned_at, name: name.clone(), id }));
    }
}
