//! [`Sleeper`]: a runner or ticker, as who may have to wake it sees it.

use std::task::Waker;

use crate::line::Rank;
use crate::sync::{self, Flag, Mutex};
use crate::waking;

/// One that may sleep.
#[derive(Debug)]
pub(super) struct Sleeper {
    /// Its thread sleeps nowhere but in our own `block_on`, and comes when it is woken.
    hosted: Flag,
    waker: Mutex<Option<std::sync::Arc<Waker>>>,
}

impl Sleeper {
    /// `hosted` is what it counts as until it has a waker.
    pub(super) fn new(hosted: bool) -> Self {
        Self { hosted: Flag::new(hosted), waker: Mutex::new(None) }
    }

    /// Who is woken; and whether it is to be relied on.
    pub(super) fn set_waker(&self, waker: &Waker, hosted: bool) {
        self.hosted.set(hosted);
        // Somebody else's code, which may do anything: not under the lock (LF3).
        let new = std::sync::Arc::new(waker.clone());
        let old = sync::lock(&self.waker).replace(new);
        drop(old);
    }

    /// In a line, those that are sure to come are first.
    pub(super) fn rank(&self) -> Rank {
        if self.is_hosted() { Rank::Host } else { Rank::Guest }
    }

    pub(super) fn is_hosted(&self) -> bool {
        self.hosted.is_set()
    }

    /// Runs what may be anybody's code, unless it is hosted.
    pub(super) fn wake(&self) {
        let waker = sync::lock(&self.waker).clone();
        waking::call(move || {
            waker.iter().for_each(|waker| waker.wake_by_ref());
            drop(waker);
        });
    }
}
