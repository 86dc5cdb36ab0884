//! [`Sleeper`]: a runner or ticker, as who may have to wake it sees it.

use std::task::Waker;

use crate::line::Rank;
use crate::sync::{self, AtomicBool, Mutex, Ordering};
use crate::waking;

/// One that may sleep.
#[derive(Debug)]
pub(super) struct Sleeper {
    /// Its thread sleeps nowhere but in our own `block_on`, and comes when it is woken.
    hosted: AtomicBool,
    waker: Mutex<Option<std::sync::Arc<Waker>>>,
}

impl Sleeper {
    /// `hosted` is what it counts as until it has a waker.
    pub(super) fn new(hosted: bool) -> Self {
        Self { hosted: AtomicBool::new(hosted), waker: Mutex::new(None) }
    }

    /// Who is woken; and whether it is to be relied on.
    pub(super) fn set_waker(&self, waker: &Waker, hosted: bool) {
        self.hosted.store(hosted, Ordering::Relaxed);
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
        self.hosted.load(Ordering::Relaxed)
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
