//! Counts the writes to memory that threads may share: by source line, by cache line, and by thread.
//!
//! A source line names the field that is written: it is the line that calls the operation, outside of
//! `sync`. So the code that is counted needs no names of its own. If one cache line is written by several
//! threads, it moves between their processors' caches.
//!
//! Each thread counts in a table of its own, so that counting adds no shared line. A count takes longer than
//! the write, so time that is measured meanwhile means nothing.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of bytes of a cache line.
const LINE: usize = 64;

/// How memory is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteKind {
    /// A read-modify-write, also a compare-and-swap that fails.
    Modify,
    /// A plain store, or access to a value that a role protects.
    Store,
    /// A lock is taken: two read-modify-writes, one when it is released.
    Lock,
}

/// The writes that one thread has made at one place in the source to one cache line. Only in a build with
/// `--cfg paceline_contention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteCount {
    /// How the memory is written.
    pub kind: WriteKind,
    /// Where the operation is called.
    pub at: &'static Location<'static>,
    /// The number of the cache line.
    pub line: usize,
    /// The number of the thread.
    pub thread: usize,
    /// How often.
    pub count: u64,
}

type Key = (WriteKind, &'static Location<'static>, usize);
type Table = Arc<Mutex<HashMap<Key, u64>>>;

static IS_ON: AtomicBool = AtomicBool::new(false);
/// The tables of all threads, also of those that have ended.
static TABLES: Mutex<Vec<Table>> = Mutex::new(Vec::new());

thread_local! {
    static TABLE: OnceCell<Table> = const { OnceCell::new() };
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to count writes from zero, or stops. At first no writes are counted. Only in a build with
/// `--cfg paceline_contention`.
pub fn count_writes(on: bool) {
    if on {
        lock(&TABLES).iter().for_each(|table| lock(table).clear());
    }
    IS_ON.store(on, Relaxed);
}

/// Returns the writes that were counted since [`count_writes`]. Only in a build with
/// `--cfg paceline_contention`.
///
/// ```
/// paceline::count_writes(true);
/// paceline::block_on(paceline::spawn(async {}));
/// paceline::count_writes(false);
/// assert!(paceline::writes().iter().any(|write| write.at.file().ends_with("executor/tasks.rs")));
/// ```
pub fn writes() -> Vec<WriteCount> {
    let mut found = Vec::new();
    for (thread, table) in lock(&TABLES).iter().enumerate() {
        let write = |(&(kind, at, line), &count): (&Key, &u64)| WriteCount { kind, at, line, thread, count };
        found.extend(lock(table).iter().map(write));
    }
    found
}

/// Counts a write to `object`, if writes are counted now.
#[inline]
#[track_caller]
pub(super) fn count<T>(kind: WriteKind, object: &T) {
    if IS_ON.load(Relaxed) {
        add((kind, Location::caller(), std::ptr::from_ref(object).addr() / LINE));
    }
}

/// Adds one to a count of this thread. Leaves it out in a signal handler that has interrupted a count, and
/// after the end of the thread's locals.
#[cold]
fn add(key: Key) {
    let add_to = |table: &OnceCell<Table>| {
        let table = table.get_or_init(|| {
            let table = Table::default();
            lock(&TABLES).push(table.clone());
            table
        });
        if let Ok(mut counts) = table.try_lock() {
            *counts.entry(key).or_default() += 1;
        }
    };
    let _ = TABLE.try_with(add_to);
}

#[cfg(test)]
mod tests {
    use super::super::{AtomicU32, Mutex as CountedMutex};
    use super::*;
    use crate::sync::{Counter, Flag};

    /// Returns the counts of the writes to the cache line of `object`, with their lines in this file.
    fn of<T>(object: &T) -> Vec<(WriteKind, u32, u64)> {
        let line = std::ptr::from_ref(object).addr() / LINE;
        let here = |write: &WriteCount| write.line == line && write.at.file() == file!();
        let mut found: Vec<_> = writes()
            .into_iter()
            .filter(here)
            .map(|write| (write.kind, write.at.line(), write.count))
            .collect();
        found.sort_by_key(|found| found.1);
        found
    }

    #[repr(align(64))]
    struct Alone<T>(T);

    /// The one test that counts, because all tests of this process share the switch.
    #[test]
    fn each_write_is_counted_with_its_source_line_and_thread_while_that_is_on() {
        let word = Alone(AtomicU32::new(1));
        let (flag, counter) = (Alone(Flag::new(false)), Alone(Counter::default()));
        let mutex = Alone(CountedMutex::new(()));
        word.0.store(1, Relaxed);
        count_writes(true);
        let first = line!() + 1;
        word.0.store(2, Relaxed);
        (0..3).for_each(|_| _ = word.0.fetch_add(1, Relaxed));
        _ = word.0.compare_exchange(9, 9, Relaxed, Relaxed);
        flag.0.raise();
        counter.0.add(1);
        std::thread::scope(|scope| _ = scope.spawn(|| drop(crate::sync::lock(&mutex.0))).join());
        drop(crate::sync::lock(&mutex.0));
        count_writes(false);
        word.0.store(3, Relaxed);
        assert_eq!(word.0.load(Relaxed), 3);
        use WriteKind::{Lock, Modify, Store};
        assert_eq!(of(&word), [(Store, first, 1), (Modify, first + 1, 3), (Modify, first + 2, 1)]);
        assert_eq!((of(&flag), of(&counter)), (vec![(Modify, first + 3, 1)], vec![(Store, first + 4, 1)]));
        assert_eq!(of(&mutex), [(Lock, first + 5, 1), (Lock, first + 6, 1)]);
        let line = std::ptr::from_ref(&mutex).addr() / LINE;
        let threads: std::collections::HashSet<_> =
            writes().iter().filter(|write| write.line == line).map(|write| write.thread).collect();
        assert_eq!(threads.len(), 2);
    }
}
