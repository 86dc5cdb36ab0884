//! [`Work`]: a piece of work for the threads.

use std::panic::Location;
use std::sync::Arc;

use async_task::Runnable;

use super::shared::{Errand, Title};
use crate::pool::ClockHeld;
use crate::waking;

/// A piece of work. A clock that is held for it is released when whoever waits for it was told.
pub(super) enum Work {
    /// Of [`unblock`](super::unblock()), if it has a place where it was made; else a stream's, for which nobody waits when its task has gone.
    Task(Runnable, Option<&'static Location<'static>>, Option<ClockHeld>),
    Errand(Arc<dyn Errand>, ClockHeld),
}

/// What came of a piece of work, for the thread that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nobody waits for it any more, so it was not begun.
    NotBegun,
    Done,
    /// Somebody else has the place of this thread.
    Lost,
}

impl Work {
    pub(super) fn run(self) -> After {
        match self {
            Work::Task(task, _, _held) => {
                // A panic of a waker, or of a destructor: that of a task is its awaiter's.
                waking::call(|| {
                    task.run();
                });
                After::Done
            }
            Work::Errand(errand, _held) => errand.run(),
        }
    }

    pub(super) fn title(&self) -> Option<Title> {
        match self {
            Work::Task(_, made_at, _) => made_at.map(|made_at| Title(None, made_at)),
            Work::Errand(errand, _) => Some(errand.title()),
        }
    }

    /// What tells an errand from all others that are there.
    pub(super) fn errand(&self) -> Option<usize> {
        match self {
            Work::Task(..) => None,
            Work::Errand(errand, _) => Some(Arc::as_ptr(errand).addr()),
        }
    }

    /// Whether it will not begin in any case: its owner, or its deadline, has said so.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Work::Errand(errand, _) if errand.is_settled())
    }

    /// Whether somebody may wait for it.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Work::Task(_, None, _))
    }

    /// It will not be done.
    pub(super) fn cancel(self) {
        match self {
            Work::Task(task, _, _held) => waking::call(|| drop(task)),
            Work::Errand(errand, _held) => errand.give_up(),
        }
    }
}
