//! [`Work`]: a piece of work for the threads.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use async_task::Runnable;

use crate::reactor::ClockHeld;
use crate::waking;

/// A job, as the threads that run it see it.
pub(crate) trait Errand: Send + Sync {
    /// Runs the job, unless it is not wanted any more.
    fn run(self: Arc<Self>) -> After;
    /// Does the first half of [`run`](Self::run): runs the closure, unless the job is not wanted any more.
    /// Returns whether it ran: then [`deliver`](Self::deliver) is the second half.
    #[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "a simulation runs jobs in halves"))]
    fn begin(self: Arc<Self>) -> bool;
    /// Passes the result on, unless that is not wanted any more.
    #[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "as above"))]
    fn deliver(self: Arc<Self>);
    /// Cancels the job, because no thread will run it.
    fn give_up(&self);
    /// Returns the name of the job.
    fn title(&self) -> Title;
    /// Returns whether the job will not begin in any case.
    fn is_settled(&self) -> bool;
}

/// The name of a job, or where it was made if it has none. A title outlives the job.
#[derive(Clone, Debug)]
pub(crate) struct Title(pub(crate) Option<Arc<str>>, pub(crate) &'static Location<'static>);

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => f.write_str(name),
            None => write!(f, "from {}", self.1),
        }
    }
}

/// A piece of work. The clock that is held for it is released after the waiting caller was told of the end.
pub(crate) enum Work {
    /// A task of [`unblock`](crate::unblock()), if it has the place where it was made. Otherwise a task of a
    /// stream: no caller awaits its end once the stream's own task is gone.
    Task(Runnable, Option<&'static Location<'static>>, Option<ClockHeld>),
    Errand(Arc<dyn Errand>, Option<ClockHeld>),
}

/// The outcome of a piece of work, for the thread that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The piece was not wanted any more, so it was not begun.
    NotBegun,
    /// The piece has ended; its thread takes the next one.
    Done,
    /// Another thread has taken the place of this one.
    Lost,
}

impl Work {
    /// Runs the piece, unless it is not wanted any more. Returns how that ended. No panic leaves this call.
    pub(crate) fn run(self) -> After {
        match self {
            Work::Task(task, _, _held) => {
                // A panic of a waker, or of a destructor. A panic of the task itself resumes where the task
                // is awaited.
                waking::call(|| {
                    task.run();
                });
                After::Done
            }
            Work::Errand(errand, _held) => errand.run(),
        }
    }

    /// Returns the title: that of the errand, or where the task was made. `None` for a piece of a stream.
    pub(crate) fn title(&self) -> Option<Title> {
        match self {
            Work::Task(_, made_at, _) => made_at.map(|made_at| Title(None, made_at)),
            Work::Errand(errand, _) => Some(errand.title()),
        }
    }

    /// Returns a number that tells an errand from all others that exist now; `None` for a task.
    pub(crate) fn errand(&self) -> Option<usize> {
        match self {
            Work::Task(..) => None,
            Work::Errand(errand, _) => Some(Arc::as_ptr(errand).addr()),
        }
    }

    /// Returns whether the piece will not begin in any case, because its owner has cancelled it or its
    /// deadline has passed.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self, Work::Errand(errand, _) if errand.is_settled())
    }

    /// Returns whether a caller may await the result.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, Work::Task(_, None, _))
    }

    /// Cancels the piece: it never begins, or for a stream never goes on, and a caller that awaits it is
    /// told. No panic leaves this call.
    pub(crate) fn cancel(self) {
        match self {
            Work::Task(task, _, _held) => waking::call(|| drop(task)),
            Work::Errand(errand, _held) => errand.give_up(),
        }
    }
}
