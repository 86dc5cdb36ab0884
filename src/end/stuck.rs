//! Which threads are stuck, and in which tasks.

use std::sync::Arc;

use crate::executor::TaskPoll;
use crate::insight::StuckThread;
use crate::pool::{Crew, Station};
use crate::sync::thread;

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

/// Returns what the report says of a thread that is stuck in these tasks: an entry for each task, or one
/// without a task.
pub(super) fn entries(thread: &thread::Thread, tasks: &[TaskPoll]) -> impl Iterator<Item = StuckThread> {
    let places = tasks.iter().map(|task| task.spawned_at).chain(tasks.is_empty().then_some(None));
    let (name, id) = (thread.name().map(String::from), thread.id());
    places.map(move |spawned_at| StuckThread { spawned_at, name: name.clone(), id })
}
