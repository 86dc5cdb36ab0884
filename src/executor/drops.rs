//! [`Drops`]: which futures are dropped on which threads while a runtime ends. So the report can name a
//! destructor that blocks, and a thread that drops a thousand futures is seen to make progress. Also collects
//! which tasks were dropped, for the report of that end.
//!
//! Drops are watched from the begin of the end until it is over. At all other times a drop reads one flag.

use std::panic::Location;

use crate::insight::Grouping;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{self, Flag, Mutex};

/// The drops of an executor's futures.
#[derive(Debug)]
pub(super) struct Drops {
    watched: Flag,
    book: Mutex<DropBook>,
}

#[derive(Debug, Default)]
struct DropBook {
    /// An entry for each thread that has begun a drop.
    threads: Vec<Dropper>,
    /// The tasks that were dropped since [`Drops::record`]; `None` while drops are not recorded.
    dropped: Option<Grouping>,
}

/// A thread that has begun to drop futures.
#[derive(Debug)]
struct Dropper {
    thread: ThreadId,
    /// Number of drops that it has begun.
    begun: u64,
    /// The drops in progress, each inside of the one before it.
    now: Vec<Dropped>,
}

/// A task: where it was spawned, and since when it was listed.
#[derive(Clone, Copy, Debug)]
struct Dropped {
    spawned_at: &'static Location<'static>,
    since: Option<u64>,
}

impl Drops {
    pub(super) fn new() -> Self {
        Self { watched: Flag::new(false), book: Mutex::default() }
    }

    pub(super) fn watch(&self) {
        self.watched.set(true);
    }

    /// Stops watching, and forgets what was recorded.
    pub(super) fn ignore(&self) {
        self.watched.set(false);
        *sync::lock(&self.book) = DropBook::default();
    }

    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watched.is_set()
    }

    /// Records drops from now on, if they are watched.
    pub(super) fn record(&self) {
        sync::lock(&self.book).dropped.get_or_insert_default();
    }

    /// Stops recording. Returns the tasks that were dropped since [`record`](Self::record).
    pub(super) fn recorded(&self) -> Grouping {
        sync::lock(&self.book).dropped.take().unwrap_or_default()
    }

    /// Notes that the calling thread begins to drop a task, which was spawned at `spawned_at` and listed
    /// since `since`.
    #[cold]
    pub(super) fn begin(&self, spawned_at: &'static Location<'static>, since: Option<u64>) {
        let thread = thread::current().id();
        let threads = &mut sync::lock(&self.book).threads;
        let task = Dropped { spawned_at, since };
        match threads.iter_mut().find(|dropper| dropper.thread == thread) {
            Some(dropper) => {
                dropper.begun += 1;
                dropper.now.push(task);
            }
            None => threads.push(Dropper { thread, begun: 1, now: vec![task] }),
        }
    }

    /// Notes that the calling thread is done with its innermost drop, and records the task if drops are
    /// recorded and the task `counts`. Does nothing if that drop began before the watch.
    #[cold]
    pub(super) fn end(&self, counts: bool) {
        let thread = thread::current().id();
        let mut book = sync::lock(&self.book);
        let DropBook { threads, dropped } = &mut *book;
        let dropper = threads.iter_mut().find(|dropper| dropper.thread == thread);
        let task = dropper.and_then(|dropper| dropper.now.pop());
        if let (Some(Dropped { spawned_at, since }), Some(dropped), true) = (task, dropped, counts) {
            dropped.add(spawned_at, since);
        }
    }

    /// Returns how many drops that thread has begun during the watch, and where the tasks that it drops now
    /// were spawned, the innermost first.
    pub(super) fn of(&self, thread: ThreadId) -> (u64, Vec<&'static Location<'static>>) {
        let threads = &sync::lock(&self.book).threads;
        let dropper = threads.iter().find(|dropper| dropper.thread == thread);
        let places = |now: &[Dropped]| now.iter().rev().map(|task| task.spawned_at).collect();
        dropper.map_or((0, Vec::new()), |dropper| (dropper.begun, places(&dropper.now)))
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
        // The end of a drop that began before the watch.
        drops.end(true);
        drops.begin(outer, None);
        drops.record();
        drops.begin(inner, None);
        assert_eq!(drops.of(here), (2, vec![inner, outer]));
        drops.end(false);
        assert_eq!(drops.of(here), (2, vec![outer]));
        drops.end(true);
        assert_eq!(drops.of(here), (2, vec![]));
        let recorded = drops.recorded().into_groups();
        assert_eq!((recorded.len(), recorded[0].spawned_at, recorded[0].number), (1, outer, 1));
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        assert_eq!(drops.of(other), (0, vec![]));
    }
}
