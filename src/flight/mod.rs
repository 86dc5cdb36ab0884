//! Notes of what each thread of a runtime does, for a flight recorder.
//!
//! The code of the layers above calls the functions of this module where something happens: a role changes, a
//! poll begins. Without the feature `trace` these functions are empty, their arguments have no size, and the
//! crate is compiled as if the calls were not there. With the feature, a call reads a thread-local pointer,
//! which is null unless a recorder records the runtime that the thread is in.
//!
//! ```text
//!   thread 1 --- notes ---> chunk --+
//!                                   | full chunks       +---------+
//!   thread 2 --- notes ---> chunk --+-----------------> |  store  | ----> snapshot
//!                                   | fresh chunks      +---------+
//!   deputy ----- notes ---> chunk --+ <-----------------
//! ```
//!
//! - Each thread has a chunk of its own, to which it appends. A note that is in a chunk never changes, so a
//!   snapshot reads the chunks while their threads write: see [`chunk`].
//! - A thread exchanges a full chunk for an empty one under the lock of the `store`, and takes this lock
//!   when it enters or leaves the runtime, but for no note. If the store has used up its memory, it empties
//!   the oldest full chunk.
//! - A thread notices that a recorder was started or stopped when it takes its next turn: see
//!   [`Membership::refresh`]. The start of a recorder wakes the threads that sleep.

#[cfg(feature = "trace")]
mod chunk;
#[cfg(feature = "trace")]
mod clock;
#[cfg(feature = "trace")]
mod forks;
#[cfg(feature = "trace")]
mod note;
#[cfg(feature = "trace")]
mod store;
#[cfg_attr(feature = "trace", path = "thread_log.rs")]
#[cfg_attr(not(feature = "trace"), path = "thread_none.rs")]
mod thread;

#[cfg(feature = "trace")]
pub(crate) use self::{note::Note, store::Store};
pub(crate) use thread::*;

/// The role of a thread, as it notes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "trace"), allow(dead_code))]
pub(crate) enum RoleNow {
    Leads,
    Follows,
    Processes,
    Outside,
}

/// Why a thread is woken to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(not(feature = "trace"), allow(unreachable_pub))]
pub enum Reason {
    /// The leader has found an event, and more work waits than it can do soon.
    Work,
    /// A task that is known to block or to compute is about to be polled.
    SlowTask,
    /// The thread that led, or could have led, leaves the runtime or begins a `block_on` of its own.
    Leaves,
    /// A thread that led makes way for one with a better claim, such as a worker for a thread that only
    /// awaits its own future; or a thread that was woken to lead passes that on, because it has other work.
    PassesOn,
    /// The deputy has found that no thread leads.
    Deputy,
}

/// Where a thread found the task that it polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(not(feature = "trace"), allow(unreachable_pub))]
pub enum FoundIn {
    /// In its direct slot: the thread woke the task itself, just before.
    Slot,
    /// In a queue.
    Queue,
    /// In the queue of another thread.
    Stolen,
}

#[cfg(feature = "trace")]
impl FoundIn {
    pub(crate) const PLACES: [Self; 3] = [Self::Slot, Self::Queue, Self::Stolen];
}
