//! The unfinished tasks of a pool: those of its crew, and of the executors that run in its `block_on`s.

use super::{Pool, Station};
#[cfg(feature = "trace")]
use crate::executor::TaskSurvey;
use crate::executor::{Grouping, StateRef, TaskGroup, TaskPoll};
use std::panic::Location;
use std::sync::Arc;

/// The result of [`Pool::tasks`].
#[derive(Debug, Default)]
pub(crate) struct PoolTasks {
    pub(crate) groups: Vec<TaskGroup>,
    /// Tasks that have not been polled.
    pub(crate) unpolled: usize,
    /// An executor was left out, because it does not track its tasks.
    pub(crate) is_partial: bool,
}

/// A task that is being polled: what its waker points to, and where it was spawned.
type PolledTask = (usize, &'static Location<'static>);

impl Pool {
    /// Returns the unfinished tasks of the crew, and of the executors that run in a `block_on` of this pool.
    pub(crate) fn tasks(&self) -> PoolTasks {
        let (mut all, mut is_partial) = (Grouping::default(), false);
        for (state, polled) in self.executors() {
            state.list_tasks(&polled, &mut all);
            is_partial |= state.unfinished().is_none();
        }
        PoolTasks { unpolled: all.unpolled, groups: all.into_groups(), is_partial }
    }

    /// Returns what is known of each unfinished task, by executor.
    #[cfg(feature = "trace")]
    pub(crate) fn survey(&self) -> Vec<TaskSurvey> {
        self.executors().into_iter().map(|(state, polled)| state.survey(polled)).collect()
    }

    /// Returns the executors of the crew and of this pool's `block_on`s, with the tasks that are polled
    /// there.
    fn executors(&self) -> Vec<(StateRef, Vec<PolledTask>)> {
        let mut executors: Vec<_> =
            self.crew().map(|crew| (crew.state().clone(), Vec::new())).into_iter().collect();
        self.stations().iter().for_each(|station| add_hosted(station, &mut executors));
        executors
    }
}

/// Adds the executors that run in this `block_on`, each one once, and the tasks that are polled there.
fn add_hosted(station: &Arc<Station>, executors: &mut Vec<(StateRef, Vec<PolledTask>)>) {
    for hosted in station.runners.lock().iter() {
        let known = executors.iter().position(|(state, _)| std::ptr::eq(&**state, &*hosted.state));
        let at = known.unwrap_or_else(|| {
            executors.push((hosted.state.clone(), Vec::new()));
            executors.len() - 1
        });
        if let Some(TaskPoll { task, spawned_at: Some(spawned_at), .. }) = hosted.runner.task_poll() {
            executors[at].1.push((task, spawned_at));
        }
    }
}
