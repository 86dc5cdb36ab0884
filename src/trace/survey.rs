//! [`TaskSurvey`]: what an executor knows of its unfinished tasks, one by one. A module of `executor`, behind
//! the feature `trace`.

use std::panic::Location;

use super::state::State;
use super::tasks::ListedTask;

/// The unfinished tasks of an executor.
#[derive(Debug)]
pub(crate) struct TaskSurvey {
    /// The address of the executor.
    pub(crate) executor: usize,
    /// The tasks that had to wait, each with the address that its waker points to.
    pub(crate) listed: Vec<(usize, ListedTask)>,
    /// The tasks that are being polled, each with the address that its waker points to.
    pub(crate) polled: Vec<(usize, &'static Location<'static>)>,
    /// The number of unfinished tasks; `None` if the executor does not track them.
    pub(crate) unfinished: Option<usize>,
}

impl State {
    /// Returns what is known of each unfinished task. `polled` is as for
    /// [`list_tasks`](Self::list_tasks).
    pub(crate) fn survey(&self, polled: Vec<(usize, &'static Location<'static>)>) -> TaskSurvey {
        let mut listed = Vec::new();
        self.tasks.for_each_listed(|address, task| listed.push((address, task)));
        TaskSurvey { executor: self.address(), listed, polled, unfinished: self.unfinished() }
    }
}
