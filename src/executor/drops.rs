//! [`Drops`]: which futures are being dropped while a runtime ends, and on which threads: so that a destructor that blocks has a
//! name, and one that drops a thousand of them is seen to get on.
//!
//! Watched from when the end begins until it is over. At all other times a drop costs a look at a flag.

use std::panic::Location;

use crate::sync::thread::{self, ThreadId};
use crate::sync::{self, Flag, Mutex};

/// The drops of an executor's futures.
#[derive(Debug)]
pub(super) struct Drops {
    watched: Flag,
    /// As many as there are threads that have dropped one.
    threads: Mutex<Vec<Dropper>>,
}

/// A thread that has dropped some.
#[derive(Debug)]
struct Dropper {
    thread: ThreadId,
    /// How many, so far.
    begun: u64,
    /// Where those were spawned that it drops now, one inside of the other.
    now: Vec<&'static Location<'static>>,
}

impl Drops {
    pub(super) fn new() -> Self {
        Self { watched: Flag::new(false), threads: Mutex::new(Vec::new()) }
    }

    pub(super) fn watch(&self) {
        self.watched.set(true);
    }

    /// Nobody watches any more.
    pub(super) fn ignore(&self) {
        self.watched.set(false);
        sync::lock(&self.threads).clear();
    }

    #[inline]
    pub(super) fn are_watched(&self) -> bool {
        self.watched.is_set()
    }

    /// The calling thread begins to drop one that was spawned there.
    #[cold]
    pub(super) fn begin(&self, spawned_at: &'static Location<'static>) {
        let thread = thread::current().id();
        let mut threads = sync::lock(&self.threads);
        match threads.iter_mut().find(|dropper| dropper.thread == thread) {
            Some(dropper) => {
                dropper.begun += 1;
                dropper.now.push(spawned_at);
            }
            None => threads.push(Dropper { thread, begun: 1, now: vec![spawned_at] }),
        }
    }

    /// It is done with the innermost one; which is not known any more where nobody watches since.
    #[cold]
    pub(super) fn end(&self) {
        let thread = thread::current().id();
        let mut threads = sync::lock(&self.threads);
        threads.iter_mut().find(|dropper| dropper.thread == thread).and_then(|dropper| dropper.now.pop());
    }

    /// How many that thread has begun to drop; and where those were spawned that it drops now, the innermost first.
    pub(super) fn of(&self, thread: ThreadId) -> (u64, Vec<&'static Location<'static>>) {
        let threads = sync::lock(&self.threads);
        let dropper = threads.iter().find(|dropper| dropper.thread == thread);
        dropper
            .map_or((0, Vec::new()), |dropper| (dropper.begun, dropper.now.iter().rev().copied().collect()))
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_in_the_drops_that_it_has_begun() {
        let (drops, here) = (Drops::new(), thread::current().id());
        assert_eq!(drops.of(here), (0, vec![]));
        let [outer, inner] = [Location::caller(), std::panic::Location::caller()];
        // One that began when somebody else watched.
        drops.end();
        drops.begin(outer);
        drops.begin(inner);
        assert_eq!(drops.of(here), (2, vec![inner, outer]));
        drops.end();
        assert_eq!(drops.of(here), (2, vec![outer]));
        drops.end();
        assert_eq!(drops.of(here), (2, vec![]));
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        assert_eq!(drops.of(other), (0, vec![]));
    }
}
