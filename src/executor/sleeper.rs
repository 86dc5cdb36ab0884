//! [`Sleeper`]: the part of a runner or ticker that other threads use to wake it.

use std::task::Waker;

use crate::line::Rank;
use crate::sync::{self, Flag, Mutex};
use crate::waking;

/// A runner or ticker that may sleep.
#[derive(Debug)]
pub(crate) struct Sleeper {
    /// Whether its thread sleeps only in this crate's `block_on`, so that it comes when it is woken.
    hosted: Flag,
    waker: Mutex<Option<std::sync::Arc<Waker>>>,
}

impl Sleeper {
    /// Creates a sleeper without a waker; `hosted` holds until it gets one.
    pub(super) fn new(hosted: bool) -> Self {
        Self { hosted: Flag::new(hosted), waker: Mutex::new(None) }
    }

    /// Sets the waker, and whether a `block_on` of this crate hosts the sleeper.
    pub(super) fn set_waker(&self, waker: &Waker, hosted: bool) {
        self.hosted.set(hosted);
        // Cloning and dropping a waker is foreign code: not under the lock (LF3).
        let new = std::sync::Arc::new(waker.clone());
        let old = sync::lock(&self.waker).replace(new);
        drop(old);
    }

    /// Returns the rank in a line: hosted sleepers, which are sure to come, are called first.
    pub(super) fn rank(&self) -> Rank {
        if self.hosted.is_set() { Rank::Host } else { Rank::Guest }
    }

    /// Wakes the sleeper, if it has a waker. Runs foreign code, unless the sleeper is hosted. A panic of that
    /// code ends here.
    pub(super) fn wake(&self) {
        let waker = sync::lock(&self.waker).clone();
        waking::call(move || {
            if let Some(waker) = &waker {
                waker.wake_by_ref();
            }
            drop(waker);
        });
    }
}
