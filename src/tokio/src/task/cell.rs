//! [`Cell`]: the state that a task and its handles share; one atomic word controls access to its parts.
//!
//! | bit | set | means |
//! |---|---|---|
//! | `COMPLETE` | once, by the task | the output exists, and is the join handle's; otherwise the task's |
//! | `ABORTED` | by an abort | the task must end instead of being polled |
//! | `ABANDONED` | once, by the join handle's drop | the output is not wanted: the completing task drops it |
//! | `WAITS` | by the join handle | the waker exists, and belongs to the task; otherwise to the join handle |

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::{Id, JoinError};
use crate::context::Named;
use crate::quiet::quietly;

const COMPLETE: u8 = 1;
const ABORTED: u8 = 2;
const ABANDONED: u8 = 4;
const WAITS: u8 = 8;

/// The part that does not depend on the output.
pub(crate) struct Header {
    id: Id,
    state: AtomicU8,
    /// The state determines its owner.
    joiner: UnsafeCell<Option<Waker>>,
    /// Wakes the task; set after its first poll, if the task waits then.
    task: OnceLock<Waker>,
}

// SAFETY: only the current owner touches the joiner's waker, and the ordered changes of the state determine
// the owner.
unsafe impl Sync for Header {}

/// A task's output, and the state for waiting for it.
pub(crate) struct Cell<T> {
    header: Header,
    output: UnsafeCell<Option<Result<T, JoinError>>>,
}

// SAFETY: if the output is not `Send`, only the task and its join handle touch it, which both stay on their
// thread; neither leaves the output to the drop of the cell, which may happen on another thread.
unsafe impl<T> Send for Cell<T> {}
// SAFETY: as above, and the state determines the owner of each part.
unsafe impl<T> Sync for Cell<T> {}

impl Header {
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Returns whether the task must end.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.state.load(Ordering::Acquire) & ABORTED != 0
    }

    /// Makes the task end instead of being polled again.
    pub(crate) fn abort(&self) {
        // ORDER: pairs with `waits_as`: if this comes first, that sees the bit; otherwise this sees the
        // waker.
        let before = self.state.fetch_or(ABORTED, Ordering::AcqRel);
        if before & (COMPLETE | ABORTED) == 0 {
            if let Some(waker) = self.task.get() {
                waker.wake_by_ref();
            }
        }
    }

    /// Registers the task's waker. Returns false if the task was aborted meanwhile. A task has the same waker
    /// all its life.
    #[inline]
    pub(crate) fn waits_as(&self, waker: &Waker) -> bool {
        if self.task.get().is_some() {
            // A later abort finds the waker.
            return true;
        }
        let _ = self.task.set(waker.clone());
        self.state.fetch_or(0, Ordering::AcqRel) & ABORTED == 0
    }

    /// Returns true if the output exists; otherwise registers the waker. For the join handle only.
    pub(crate) fn join(&self, waker: &Waker) -> bool {
        let state = self.state.load(Ordering::Acquire);
        if state & COMPLETE != 0 {
            return true;
        }
        if state & WAITS != 0 && !self.take_back() {
            return true;
        }
        // SAFETY: `WAITS` is not set, so the waker belongs to the join handle.
        let joiner = unsafe { &mut *self.joiner.get() };
        match joiner {
            Some(known) if known.will_wake(waker) => {}
            _ => *joiner = Some(waker.clone()),
        }
        self.state.fetch_or(WAITS, Ordering::AcqRel) & COMPLETE != 0
    }

    /// Takes the waker back, unless the task has completed and owns it.
    fn take_back(&self) -> bool {
        let without = |state| (state & COMPLETE == 0).then_some(state & !WAITS);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, without).is_ok()
    }
}

impl<T> Cell<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            header: Header {
                id: Id::next(),
                state: AtomicU8::new(0),
                joiner: UnsafeCell::new(None),
                task: OnceLock::new(),
            },
            output: UnsafeCell::new(None),
        })
    }

    pub(crate) fn id(&self) -> Id {
        self.header.id
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.header.is_aborted()
    }

    /// Completes the task. Called once, by the task, which calls nothing else after it.
    pub(crate) fn complete(&self, output: Result<T, JoinError>) {
        // SAFETY: `COMPLETE` is not set, so the output belongs to the task.
        unsafe { *self.output.get() = Some(output) };
        // ORDER: Release for readers of the output; Acquire for the waker and the last changes of the join
        // handle.
        let before = self.header.state.fetch_or(COMPLETE, Ordering::AcqRel);
        if before & ABANDONED != 0 {
            // SAFETY: no join handle exists any more, so the output belongs to the task.
            unsafe { self.discard() };
        } else if before & WAITS != 0 {
            // SAFETY: the waker belonged to the task at its completion, and still does: the join handle sees
            // `COMPLETE` before it touches the waker.
            let joiner = unsafe { (*self.header.joiner.get()).take() };
            if let Some(joiner) = joiner {
                joiner.wake();
            }
        }
    }

    /// Drops the output. A panic of its destructor is caught: no caller could get it.
    ///
    /// # Safety
    ///
    /// The output must belong to the caller.
    unsafe fn discard(&self) {
        // SAFETY: the output belongs to the caller, as promised.
        let output = unsafe { (*self.output.get()).take() };
        let _named = Named::begin(self.header.id);
        quietly(|| drop(output));
    }
}

/// A cell as its join handle sees it, without the lifetime of its output.
pub(crate) trait Joined: Send + Sync {
    fn header(&self) -> &Header;

    /// Moves the output into the `Option<Result<T, JoinError>>` at `to`, or `None` if it was taken before.
    ///
    /// # Safety
    ///
    /// The cell's output must be a `T`, the cell must be complete, and the caller must be its join handle.
    unsafe fn take(&self, to: *mut ());

    /// Records the drop of the join handle.
    ///
    /// # Safety
    ///
    /// Called once, by the join handle.
    unsafe fn abandon(&self);
}

impl<T> Joined for Cell<T> {
    fn header(&self) -> &Header {
        &self.header
    }

    unsafe fn take(&self, to: *mut ()) {
        // SAFETY: the caller keeps the promises above.
        unsafe { *to.cast() = (*self.output.get()).take() };
    }

    unsafe fn abandon(&self) {
        let before = self.header.state.fetch_or(ABANDONED, Ordering::AcqRel);
        if before & COMPLETE != 0 {
            // SAFETY: the output belongs to the join handle.
            unsafe { self.discard() };
        } else {
            // SAFETY: a completing task takes the waker only if the cell was not abandoned, so the waker
            // belongs to the join handle, which is being dropped.
            drop(unsafe { (*self.header.joiner.get()).take() });
        }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}
