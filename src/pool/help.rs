//! Help from a nested wait: a thread that waits in a `block_on` inside a task polls other tasks meanwhile.

use super::Station;
use super::stay::StayGuard;
use crate::executor;

/// Polls waiting tasks of the pool in one of whose tasks this `block_on` is nested, on top of that task,
/// until the awaited future is woken or no task waits in the injector. The deputy asks for this if all
/// workers are stuck and no more may be added: the awaited task may be among the tasks that wait. Does
/// nothing if the `block_on` is in no such task, or that pool is gone. Panics if the tasks are [nested too
/// deeply](super::stay::Stay::go_deeper).
#[cold]
pub(super) fn run_waiting_tasks(station: &Station, stay: &StayGuard<'_>) {
    let Some(pool) = station.helped_pool() else { return };
    let Some(crew) = pool.crew() else { return };
    while !stay.is_woken() && crew.has_surplus() {
        // The newest task is most likely the task that this thread waits for; the oldest may be a task that
        // waits itself.
        let run = || {
            station.stage.begin_work();
            let task = crew.state().newest_task().map(executor::run_beside);
            station.stage.end_work();
            task.is_some()
        };
        if !stay.go_deeper(crew.stack_size(), run) {
            return;
        }
    }
}
