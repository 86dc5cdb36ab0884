//! Lists the unfinished tasks of an executor.

use std::panic::Location;

use super::state::State;
use super::tasks::ListedTask;
use crate::insight::Grouping;

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
}
