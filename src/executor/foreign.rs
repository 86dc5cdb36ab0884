//! Tasks that other code has built with `async-task`.
//!
//! A foreign task is handed over once for each of its polls, as a [`Runnable`], which is queued as it is. So
//! the executor neither counts nor lists the task, and has no line for it. Whichever thread finds the task
//! polls it as it polls an own one: the deputy sees a poll that blocks, and a panic ends with the poll. A
//! runnable that is dropped cancels its task.

use async_task::Runnable;

use super::host;
use super::state::State;

/// Queues one poll of a foreign task where a task that is woken here would be queued. A task that wakes
/// itself goes to the back.
///
/// If the executor is used on several threads, the task may be polled and dropped on any thread: the maker of
/// a task that is not `Send`, or borrows, has promised `async-task` that this is sound.
pub(crate) fn schedule(state: &State, task: Runnable) {
    let address = task.into_raw();
    let wakes_itself = host::with_running(|runner| runner.is_some_and(|runner| runner.polls(address)));
    // SAFETY: the pointer is that of the line above.
    host::schedule(state, unsafe { Runnable::from_raw(address) }, wakes_itself);
}
