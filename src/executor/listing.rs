//! Lists the unfinished tasks of an executor.

use std::panic::Location;

use super::state::State;
use super::tasks::ListedTask;
use crate::insight::Grouping;

/// The unfinished tasks of an executor.
#[cfg(feature = "trace")]
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
    /// Adds the unfinished tasks, if they are tracked; those that were never polled only as a number.
    /// `polled` are the tasks that are being polled right now, each with the address that its waker points
    /// to: tasks that are in their first poll are listed nowhere else.
    pub(crate) fn list_tasks(&self, polled: &[(usize, &'static Location<'static>)], into: &mut Grouping) {
        if !self.tracks_tasks() {
            return;
        }
        let (mut listed, mut in_first_poll) = (0, polled.to_vec());
        self.tasks.for_each_listed(|task, ListedTask { spawned_at, since }| {
            in_first_poll.retain(|(other, _)| *other != task);
            into.add(spawned_at, Some(since));
            listed += 1;
        });
        // A polled task may be done already and still be on its thread's stack: the count tells.
        let unlisted = self.tasks.count().saturating_sub(listed);
        in_first_poll.truncate(unlisted);
        in_first_poll.iter().for_each(|(_, spawned_at)| into.add(spawned_at, None));
        into.unpolled += unlisted - in_first_poll.len();
    }

    /// Returns what is known of each unfinished task. `polled` is as for [`list_tasks`](Self::list_tasks).
    #[cfg(feature = "trace")]
    pub(crate) fn survey(&self, polled: Vec<(usize, &'static Location<'static>)>) -> TaskSurvey {
        let mut listed = Vec::new();
        self.tasks.for_each_listed(|address, task| listed.push((address, task)));
        TaskSurvey { executor: self.address(), listed, polled, unfinished: self.unfinished() }
    }
}
