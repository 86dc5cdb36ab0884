//! Panics of tasks: each is counted, and the first one of each spawn line is told of.
//!
//! A guard in the task's poll notes a panic that leaves the poll. Code outside of this crate with tasks that
//! catch their panics calls [`note`] itself. From there the panic goes to the code that awaits the task, or
//! nowhere if the task is detached. Only `async-task` knows which, so the line names both.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::state::State;
use crate::notice;

/// The lines that were told of, in the whole process. Std's lock: no step of a protocol is made under it.
static TOLD: LazyLock<Mutex<HashSet<Location<'static>>>> = LazyLock::new(Mutex::default);

/// Counts a panic of a task's poll. If the executor belongs to a runtime and this is the first panic of that
/// spawn line in the process, also prints a line.
#[cold]
pub(crate) fn note(state: &State, spawned_at: &'static Location<'static>) {
    state.panicked.add_shared(1);
    // For an executor that a program runs itself no metrics show the count.
    if state.of_runtime && is_first(spawned_at) {
        notice::print(format_args!(
            "the task spawned at {spawned_at} panicked. Code that awaits the task gets the panic; if the task is detached, \
             nothing does. Later panics of tasks from this line are only counted (`Metrics::tasks_panicked`)"
        ));
    }
}

/// Returns whether this is the first call for that spawn line.
fn is_first(spawned_at: &'static Location<'static>) -> bool {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(*spawned_at)
}
