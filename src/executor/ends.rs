//! What the end of a runtime asks of its executor: how many tasks are left, and which of them ask.

use super::host;
use super::runner::Runner;
use super::state::State;
use crate::frame;

/// What of an executor is on the calling thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Nothing.
    Nothing,
    /// The poll of this task, by what its waker points to.
    Task(usize),
    /// So many tasks, which wait for a `block_on` that is nested in them.
    Below(usize),
}

impl State {
    /// What of this executor the calling thread is in.
    pub(crate) fn is_on_stack(&self) -> Inside {
        let is_ours = |runner: &&Runner| runner.is_of(self.address()) && runner.beat().is_in_task();
        host::with_running(|top| {
            if let Some(runner) = top.filter(is_ours) {
                return Inside::Task(runner.task());
            }
            // SAFETY: a runner runs only while its `poll`, which keeps it alive, is on this thread's stack.
            let below = |runner: *const ()| unsafe { runner.cast::<Runner>().as_ref() };
            match frame::here(|here| here.runners_below().filter_map(below).filter(is_ours).count()) {
                0 => Inside::Nothing,
                tasks => Inside::Below(tasks),
            }
        })
    }

    /// The calling thread waits until no more tasks are left than are [enough](Self::is_enough): it parks while there are more. See
    /// [`Vigil`](super::vigil::Vigil).
    pub(crate) fn watch_ends(&self) {
        self.tasks.watch();
    }

    pub(crate) fn look_away(&self) {
        self.tasks.look_away();
    }

    /// So many tasks may be left from now on; who waits looks again.
    pub(crate) fn is_enough(&self, left: usize) {
        self.tasks.is_enough(left);
    }
}
