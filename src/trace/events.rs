//! [`Trace`]: what the threads of a runtime did, as a flight recorder has it.

use std::panic::Location;
use std::thread::ThreadId;
use std::time::{Duration, SystemTime};

use super::{FoundIn, Reason};
use crate::insight::StallKind;
use crate::runtime::Role;

/// A snapshot of a [`FlightRecorder`](super::FlightRecorder): what the threads of a runtime did in the recent
/// past.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trace {
    /// The threads that took part, in the order in which they first came to a runtime of the process. The
    /// indices hold for one snapshot.
    pub threads: Vec<ThreadTrace>,
    /// When the recorder was started. The times of all events count from here, on a clock that never goes
    /// back: that of a simulation, if the thread that started the recorder was in it.
    pub started_at: SystemTime,
    /// When this snapshot was taken.
    pub taken_at: Duration,
}

/// One thread of a [`Trace`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadTrace {
    /// The name of the thread, if it has one.
    pub name: Option<String>,
    /// The thread.
    pub thread_id: ThreadId,
    /// The number by which the operating system knows the thread; 0 if that is not known.
    pub os_id: u64,
    /// The events of the thread, the oldest first.
    pub events: Vec<TraceEvent>,
    /// The number of older events that gave way to newer ones.
    pub dropped: u64,
}

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEvent {
    /// When it happened, counted from [`Trace::started_at`].
    pub at: Duration,
    /// The action of the thread.
    pub action: Action,
}

/// An action of a thread: see [`TraceEvent`]. Tasks have numbers, each of which is used once in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The thread has this role from now on: it leads, follows, processes, or is outside of the runtime.
    Role(Role),
    /// The thread, which leads, goes to sleep until the poller reports an event.
    Sleeps,
    /// The poller has reported this number of events to the thread, which leads. Zero if the sleep of the
    /// thread was interrupted.
    Events(u32),
    /// The thread wakes another thread to lead.
    Promotes {
        /// The index of the other thread in [`Trace::threads`]; `None` if the recorder has not seen it so
        /// far.
        thread: Option<usize>,
        /// Why it is woken.
        reason: Reason,
    },
    /// The thread has nothing to do, and takes events that another thread has fetched and not fired yet.
    Steals {
        /// The index of the other thread in [`Trace::threads`]; `None` if the recorder has not seen it so
        /// far.
        thread: Option<usize>,
        /// How many events it takes.
        events: u32,
    },
    /// The thread spawns a task.
    Spawns {
        /// The new task.
        task: u64,
        /// Where it is spawned.
        spawned_at: &'static Location<'static>,
    },
    /// The thread wakes a task. If the thread polls a task at that moment, that task is the one that wakes. A
    /// task that is woken while it is polled counts as woken at the end of that poll, by its own thread.
    /// Wakes by threads outside of the runtime are not recorded.
    Wakes {
        /// The task that is woken.
        task: u64,
    },
    /// The thread begins to poll a task.
    PollBegins {
        /// The task that is polled.
        task: u64,
        /// Where it was spawned.
        spawned_at: &'static Location<'static>,
        /// Where the thread found the task.
        from: FoundIn,
    },
    /// The poll that began last on this thread is over.
    PollEnds,
    /// A task has ended: its future was dropped.
    Ends {
        /// The task that has ended.
        task: u64,
    },
    /// A timer has fired.
    TimerFires,
    /// The deputy, which is the thread with this event, has found that another thread does not return from
    /// a task: see [`Stall`](crate::Stall).
    Stalls {
        /// The index of the stalled thread in [`Trace::threads`]; `None` if the recorder has not seen it so
        /// far.
        thread: Option<usize>,
        /// Where the task was spawned, or the `block_on` was called.
        spawned_at: &'static Location<'static>,
        /// Whether it blocks or computes.
        kind: StallKind,
        /// How long the stall has lasted.
        lasted: Duration,
    },
}
