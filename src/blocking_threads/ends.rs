//! The end of a runtime: what it needs of the threads that run blocking code.

use std::collections::VecDeque;
use std::mem;

use super::{Piece, Threads};
use crate::sync::{self, thread};

impl Threads {
    /// Returns how many pieces of work wait or run that a caller may still await. Unparks `keeper` each time
    /// that this number falls to zero, until the threads are closed.
    pub(crate) fn left(&self, keeper: &thread::Thread) -> usize {
        let mut inner = sync::lock(&self.inner);
        inner.keeper = Some(keeper.clone());
        inner.open
    }

    /// Returns whether the calling thread runs a piece of work that a caller may still await.
    pub(crate) fn is_at_work_here(&self) -> bool {
        let here = thread::current().id();
        let is_open = |piece: &Piece| piece.thread == here && piece.title.is_some() && !piece.is_lost;
        sync::lock(&self.inner).pieces.iter().any(is_open)
    }

    /// Closes the threads: they accept no work from now on, and what is queued is cancelled; neither, if the
    /// owner wants the queue [finished](super::Owner::finishes_queue). Threads without work end. Returns how
    /// many pieces that a caller may await this has cancelled. Runs no user code.
    pub(crate) fn close(&self) -> usize {
        let mut inner = sync::lock(&self.inner);
        self.closed.set(true);
        inner.keeper = None;
        let waits = if self.finishes_queue { VecDeque::new() } else { mem::take(&mut inner.queue) };
        inner.open -= waits.iter().filter(|work| work.is_open()).count();
        let cancelled = waits.iter().filter(|work| work.is_open() && !work.is_settled()).count();
        inner.doomed.extend(waits);
        let idle = mem::take(&mut inner.idle);
        inner.coming += idle.len();
        drop(inner);
        idle.iter().for_each(|seat| seat.call());
        cancelled
    }

    /// Returns how many of the cancelled pieces were not dropped yet.
    pub(crate) fn doomed(&self) -> usize {
        sync::lock(&self.inner).doomed.len()
    }

    /// Drops the cancelled pieces. Several threads may do this at once. No panic leaves this call.
    pub(crate) fn drop_doomed(&self) {
        // One by one: a piece that blocks in its drop does not keep other threads from dropping the rest.
        let next = || sync::lock(&self.inner).doomed.pop_front();
        while let Some(work) = next() {
            work.cancel();
        }
    }

    /// Returns the pieces of work that run, without those of streams.
    pub(crate) fn at_work(&self) -> Vec<Piece> {
        let inner = sync::lock(&self.inner);
        inner.pieces.iter().filter(|piece| piece.title.is_some()).cloned().collect()
    }
}
