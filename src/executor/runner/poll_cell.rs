//! [`PollCell`]: the poll of a runner that is in progress, for other threads, and the deputy's mark on it.
//!
//! | word | says | stored by |
//! |---|---|---|
//! | `stage` | how far the thread has got | own thread |
//! | `task` | the address that the task's waker points to | own thread, before the stage |
//! | `spawned_at` | where the task was spawned; null if it is foreign | own thread, before and in the stage |
//! | `mark` | in which stage the deputy has caught the thread, and whether it computed | the deputy |
//!
//! Each poll, and each drop of a cancelled task, is a stage of its own.
//!
//! **An observer gets values of one poll.** It reads the stage, the values, and the stage again, as the
//! reader of a sequence lock does. A value is stored after the end of the poll before it. So an observer that
//! reads a value of a later poll reads a later stage then, and rejects what it has read.
//!
//! **The mark cannot meet another task.** It names its stage, and the end of a poll compares that with the
//! stage of this poll. The deputy stores the mark at some time after it has seen the stage twice: if the poll
//! is over by then, the mark names a stage that does not come again. In a stage in which a task is dropped,
//! no poll compares, and the mark stays without an effect, as does one that comes after the comparison. So no
//! thread clears a mark. (A stage comes again after 2^62 changes.)

use std::panic::Location;
use std::ptr::{self, NonNull};

use crate::stage::{Stage, StageCell, StageMark};
use crate::sync::{self, AtomicPtr, Ordering};

/// The state of a task's thread when its poll had taken a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caught {
    /// The task blocked its thread.
    Blocking,
    /// The task was running.
    Computing,
}

/// A poll of a task that is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskPoll {
    /// The address that the task's waker points to, which identifies the task.
    pub(crate) task: usize,
    /// Where the task was spawned; `None` if it is a foreign task, and for a moment at the begin of a poll.
    pub(crate) spawned_at: Option<&'static Location<'static>>,
    /// Which poll of the runner this is.
    pub(crate) stage: Stage,
}

/// The words.
#[derive(Debug)]
pub(crate) struct PollCell {
    stage: StageCell,
    task: AtomicPtr<()>,
    spawned_at: AtomicPtr<Location<'static>>,
    mark: StageMark,
}

impl PollCell {
    pub(crate) fn new() -> Self {
        Self {
            stage: StageCell::default(),
            task: AtomicPtr::new(ptr::null_mut()),
            spawned_at: AtomicPtr::new(ptr::null_mut()),
            mark: StageMark::default(),
        }
    }

    /// Notes the task that is polled or dropped from now on.
    #[inline]
    pub(crate) fn begin(&self, task: NonNull<()>) {
        // ORDER: Release pairs with the fence of `task_poll`: an observer that reads the value sees that the
        // poll before is over.
        self.task.store(task.as_ptr(), Ordering::Release);
        self.spawned_at.store(ptr::null_mut(), Ordering::Release);
        self.stage.toggle_work();
    }

    /// Notes where the task was spawned.
    #[inline]
    pub(crate) fn set_place(&self, spawned_at: &'static Location<'static>) {
        // ORDER: as in `begin`; the observer sees the stage of this poll.
        self.spawned_at.store(ptr::from_ref(spawned_at).cast_mut(), Ordering::Release);
    }

    /// Notes that the place is not known any more.
    pub(crate) fn clear_place(&self) {
        // ORDER: as in `begin`.
        self.spawned_at.store(ptr::null_mut(), Ordering::Release);
    }

    pub(crate) fn has_place(&self) -> bool {
        !self.spawned_at.load(Ordering::Relaxed).is_null()
    }

    /// Notes that the task is polled no longer.
    #[inline]
    pub(crate) fn end(&self) {
        self.stage.toggle_work();
    }

    /// Returns the address of the task that is polled, or was polled last.
    pub(crate) fn task(&self) -> *const () {
        self.task.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn stage(&self) -> Stage {
        self.stage.get()
    }

    /// Returns the poll of a task that is in progress; `None` if there is none, or if the thread made
    /// progress during this call.
    pub(crate) fn task_poll(&self) -> Option<TaskPoll> {
        let stage = self.stage();
        let task = self.task.load(Ordering::Relaxed).addr();
        // SAFETY: `spawned_at` is null, or a `&'static` that `set_place` stored.
        let spawned_at = unsafe { self.spawned_at.load(Ordering::Relaxed).as_ref() };
        // ORDER: pairs with the Release of `begin` and `set_place`: if a value is of a later poll, the second
        // reading of the stage is later than the first.
        sync::acquire_fence();
        (stage.is_at_work() && self.stage() == stage).then_some(TaskPoll { task, spawned_at, stage })
    }

    /// Marks the task that is polled at `stage` as slow, because the deputy has found it there in two looks.
    /// `at` is the state of its thread. Only for the deputy.
    pub(crate) fn catch(&self, stage: Stage, at: Caught) {
        self.mark.set(stage, at == Caught::Computing);
    }

    /// Returns whether the deputy has marked the poll in progress. Only for its thread.
    #[inline]
    pub(crate) fn is_caught(&self) -> bool {
        self.mark.is_on(self.stage())
    }

    /// Returns what the poll in progress was caught in; `None` if the deputy has not marked it.
    pub(crate) fn caught(&self) -> Option<Caught> {
        let computes = self.mark.get(self.stage())?;
        Some(if computes { Caught::Computing } else { Caught::Blocking })
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Begins to poll the task with this number for an address.
    fn begin(cell: &PollCell, task: usize) {
        cell.begin(NonNull::new(ptr::without_provenance_mut(task)).unwrap());
    }

    /// Fails if a mark meets the next poll: one that was set in time and not looked at, as in the drop of a
    /// task; or one that comes late.
    #[test]
    fn a_mark_is_on_the_poll_for_which_it_was_set_and_no_other() {
        let cell = PollCell::new();
        let mut before = cell.stage();
        for at in [Caught::Computing, Caught::Blocking] {
            begin(&cell, 1);
            let dropped = cell.stage();
            cell.catch(dropped, at);
            cell.end();
            begin(&cell, 2);
            assert_eq!((cell.is_caught(), cell.caught()), (false, None), "{at:?}");
            for late in [before, dropped] {
                cell.catch(late, at);
                assert_eq!((cell.is_caught(), cell.caught()), (false, None), "{at:?}");
            }
            before = cell.stage();
            cell.catch(before, at);
            assert_eq!((cell.is_caught(), cell.caught()), (true, Some(at)));
            cell.end();
            assert_eq!((cell.is_caught(), cell.caught()), (false, None), "{at:?}");
        }
    }
}
