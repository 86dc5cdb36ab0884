//! [`Cell`]: what a task and its handles share; and the one atomic word that says who may touch what.
//!
//! | bit | set | means |
//! |---|---|---|
//! | `COMPLETE` | once, by the task | the output is there, and the join handle's; else it is the task's |
//! | `ABORTED` | by whoever aborts it | the task is to end instead of being polled |
//! | `ABANDONED` | once, by the join handle's drop | nobody wants the output: who completes drops it |
//! | `WAITS` | by the join handle | the waker is there, and the task's to take, when it completes; else it is the join handle's |

use std::cell::UnsafeCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use super::{Id, JoinError};
use crate::context::Named;

const COMPLETE: u8 = 1;
const ABORTED: u8 = 2;
const ABANDONED: u8 = 4;
const WAITS: u8 = 8;

/// What does not depend on the output.
pub(crate) struct Header {
    id: Id,
    state: AtomicU8,
    /// Whose it is, the state says.
    joiner: UnsafeCell<Option<Waker>>,
    /// Has the task polled; there after its first poll, if it waits then.
    task: OnceLock<Waker>,
}

// SAFETY: nobody touches the joiner's waker but whose it is, as the state says, whose changes are ordered.
unsafe impl Sync for Header {}

/// A task's output, and what is needed to wait for it.
pub(crate) struct Cell<T> {
    header: Header,
    output: UnsafeCell<Option<Result<T, JoinError>>>,
}

// SAFETY: the output of a task that is not `Send` is touched by the task, which stays on its thread, and by its join handle, which
// does; neither leaves it to the drop of the cell, which may be elsewhere.
unsafe impl<T> Send for Cell<T> {}
// SAFETY: as above, and who may touch it, the state says.
unsafe impl<T> Sync for Cell<T> {}

impl Header {
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Whether the task is to end.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.state.load(Ordering::Acquire) & ABORTED != 0
    }

    /// Has the task end instead of being polled again.
    pub(crate) fn abort(&self) {
        // ORDER: with `waits_as`: if this comes first there, that sees the bit; else this sees the waker.
        let before = self.state.fetch_or(ABORTED, Ordering::AcqRel);
        if before & (COMPLETE | ABORTED) == 0 {
            self.task.get().into_iter().for_each(Waker::wake_by_ref);
        }
    }

    /// The task waits, and is woken by this. False if it was aborted meanwhile. A task has one waker all its life.
    #[inline]
    pub(crate) fn waits_as(&self, waker: &Waker) -> bool {
        if self.task.get().is_some() {
            // Whoever aborts it finds the waker.
            return true;
        }
        let _ = self.task.set(waker.clone());
        self.state.fetch_or(0, Ordering::AcqRel) & ABORTED == 0
    }

    /// True if the output is there; else the waker is called when it is. For the join handle only.
    pub(crate) fn join(&self, waker: &Waker) -> bool {
        let state = self.state.load(Ordering::Acquire);
        if state & COMPLETE != 0 {
            return true;
        }
        if state & WAITS != 0 && !self.take_back() {
            return true;
        }
        // SAFETY: `WAITS` is not set, so it is the join handle's.
        let joiner = unsafe { &mut *self.joiner.get() };
        match joiner {
            Some(known) if known.will_wake(waker) => {}
            _ => *joiner = Some(waker.clone()),
        }
        self.state.fetch_or(WAITS, Ordering::AcqRel) & COMPLETE != 0
    }

    /// Takes the waker back from the task; unless that is complete, and has it.
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

    /// The task is over. Called once, by the task, which calls nothing else after it.
    pub(crate) fn complete(&self, output: Result<T, JoinError>) {
        // SAFETY: `COMPLETE` is not set, so it is the task's.
        unsafe { *self.output.get() = Some(output) };
        // ORDER: Release, for who reads the output; Acquire, for the waker and the join handle's last deeds.
        let before = self.header.state.fetch_or(COMPLETE, Ordering::AcqRel);
        if before & ABANDONED != 0 {
            // SAFETY: there is no join handle any more, whose it would be.
            unsafe { self.discard() };
        } else if before & WAITS != 0 {
            // SAFETY: it was the task's when that completed, and so it stays: the join handle sees `COMPLETE` before it touches it.
            let joiner = unsafe { (*self.header.joiner.get()).take() };
            joiner.into_iter().for_each(Waker::wake);
        }
    }

    /// Drops the output. A panic of its destructor ends here: nobody is there who could be told.
    ///
    /// # Safety
    ///
    /// It is the caller's.
    unsafe fn discard(&self) {
        // SAFETY: as the caller promises.
        let output = unsafe { (*self.output.get()).take() };
        let _named = Named::begin(self.header.id);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(output)));
    }
}

/// A cell as its join handle sees it, which need not know that its output lives long enough.
pub(crate) trait Joined: Send + Sync {
    fn header(&self) -> &Header;

    /// Moves the output into the `Option<Result<T, JoinError>>` at `to`. Nothing if it was taken before.
    ///
    /// # Safety
    ///
    /// The cell's output is a `T`; it is complete; the caller is its join handle.
    unsafe fn take(&self, to: *mut ());

    /// There is no join handle any more.
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
        // SAFETY: as the caller promises.
        unsafe { *to.cast() = (*self.output.get()).take() };
    }

    unsafe fn abandon(&self) {
        let before = self.header.state.fetch_or(ABANDONED, Ordering::AcqRel);
        if before & COMPLETE != 0 {
            // SAFETY: it is the join handle's.
            unsafe { self.discard() };
        } else {
            // SAFETY: a task that completes takes it only if it was not abandoned, so it is the join handle's, which is no more.
            drop(unsafe { (*self.header.joiner.get()).take() });
        }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}
