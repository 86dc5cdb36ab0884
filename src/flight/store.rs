//! [`Store`]: the notes of all threads that one recorder has.
//!
//! Notes are kept for a minimal age, as far as the memory allows: a full chunk is emptied and used again if
//! its last note is older than that, or if all memory is used. A thread that has not filled its chunk keeps
//! it. So the last notes of a thread that blocks are there, however long it blocks.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, SystemTime};

use super::chunk::{CHUNK_SIZE, Chunk, Words};
use super::clock::NoteClock;
use super::note::{Note, time};

/// The notes of a recorder.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) clock: NoteClock,
    pub(crate) started_at: SystemTime,
    min_age: Duration,
    /// Upper bound of the number of full chunks.
    max_full: usize,
    /// Std's lock: no code of the runtime's protocols runs under it, and the thread that holds it waits for
    /// nothing.
    threads: Mutex<NotesByThread>,
}

#[derive(Debug, Default)]
struct NotesByThread {
    /// By the number of the thread.
    by_number: BTreeMap<u64, ThreadNotes>,
    /// The number of the thread of each full chunk, in the order in which they became full.
    full: VecDeque<u64>,
}

/// The notes of one thread.
#[derive(Debug)]
struct ThreadNotes {
    about: AboutThread,
    /// The oldest first.
    full: VecDeque<Arc<Chunk>>,
    current: Arc<Chunk>,
    dropped: u64,
}

/// A thread with notes in a [`Store`].
#[derive(Clone, Debug)]
pub(crate) struct AboutThread {
    pub(crate) number: u64,
    pub(crate) name: Option<String>,
    pub(crate) id: ThreadId,
    /// The number of the operating system; 0 if it is not known.
    pub(crate) os_id: u64,
}

/// The notes of one thread in a snapshot: each with the nanoseconds at which it was made, the oldest first.
#[derive(Debug)]
pub(crate) struct NotesOfThread {
    pub(crate) about: AboutThread,
    pub(crate) notes: Vec<(u64, Note)>,
    /// The number of older notes that were dropped.
    pub(crate) dropped: u64,
}

impl Store {
    /// Creates a store without notes. Its full chunks take up to `max_bytes`.
    pub(crate) fn new(min_age: Duration, max_bytes: usize) -> Self {
        Self {
            clock: NoteClock::start(),
            started_at: SystemTime::now(),
            min_age,
            max_full: (max_bytes / CHUNK_SIZE).max(1),
            threads: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, NotesByThread> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the current thread, unless it was added before. Returns the chunk to which it appends.
    pub(super) fn add(&self, about: AboutThread) -> Arc<Chunk> {
        let mut threads = self.lock();
        // Forget threads that are gone and of which no note is left. A thread that is about to append to the
        // chunk has a reference to it.
        threads.by_number.retain(|_, thread| {
            !thread.full.is_empty() || thread.current.len() > 0 || Arc::strong_count(&thread.current) > 1
        });
        let new = || ThreadNotes {
            about: about.clone(),
            full: VecDeque::new(),
            current: Arc::new(Chunk::new()),
            dropped: 0,
        };
        threads.by_number.entry(about.number).or_insert_with(new).current.clone()
    }

    /// Takes the full chunk of a thread that was added. Returns the one to which it appends from now on.
    #[cold]
    pub(super) fn exchange(&self, number: u64) -> Arc<Chunk> {
        let (now, scale) = (self.clock.ticks(), self.clock.scale());
        let age = |last: u64| Duration::from_nanos(scale.nanos(now.saturating_sub(time(last))));
        let mut threads = self.lock();
        threads.full.push_back(number);
        let mut empty = threads.drop_oldest(|count, last| count > self.max_full || age(last) > self.min_age);
        // A snapshot may be reading the chunk: then that is freed when the snapshot is made.
        let chunk = match empty.as_mut().and_then(Arc::get_mut) {
            Some(chunk) => {
                chunk.clear();
                empty.expect("it was just cleared")
            }
            None => Arc::new(Chunk::new()),
        };
        let thread = threads.by_number.get_mut(&number).expect("a thread with a chunk is listed");
        thread.full.push_back(mem::replace(&mut thread.current, chunk.clone()));
        chunk
    }

    /// Returns the nanoseconds since the start, and all notes. Threads go on meanwhile, so some notes may be
    /// later than that.
    pub(crate) fn snapshot(&self) -> (u64, Vec<NotesOfThread>) {
        // First: what a thread did later may have followed something that the snapshot does not have.
        let taken_at = self.clock.ticks();
        let copy = |thread: &ThreadNotes| {
            let chunks: Vec<_> = thread.full.iter().chain([&thread.current]).cloned().collect();
            (thread.about.clone(), chunks, thread.dropped)
        };
        let threads: Vec<_> = self.lock().by_number.values().map(copy).collect();
        let scale = self.clock.scale();
        let notes_of = |chunks: Vec<Arc<Chunk>>| {
            let decode = |words: Words| {
                // SAFETY: all words in a chunk were encoded by a `Log` of this process.
                let (ticks, note) = unsafe { Note::decode(words) };
                (scale.nanos(ticks), note)
            };
            chunks.iter().flat_map(|chunk| chunk.read()).map(decode).collect()
        };
        let notes_of_thread =
            |(about, chunks, dropped)| NotesOfThread { about, notes: notes_of(chunks), dropped };
        (scale.nanos(taken_at), threads.into_iter().map(notes_of_thread).collect())
    }
}

impl NotesByThread {
    /// Drops the oldest full chunks while `is_old` returns true for the number of full chunks and the last
    /// note of the oldest. Returns one of them.
    fn drop_oldest(&mut self, is_old: impl Fn(usize, u64) -> bool) -> Option<Arc<Chunk>> {
        let mut dropped = None;
        while let Some(number) = self.full.front() {
            let thread = self.by_number.get_mut(number).expect("a thread with a full chunk is listed");
            // The chunk of the thread that is exchanging its chunk may be listed before it is there.
            let Some(oldest) = thread.full.front() else { break };
            if !is_old(self.full.len(), oldest.last().unwrap_or(0)) {
                break;
            }
            thread.dropped += oldest.len() as u64;
            dropped = thread.full.pop_front();
            self.full.pop_front();
        }
        dropped
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::super::chunk::NOTES;
    use super::*;

    fn about(number: u64) -> AboutThread {
        AboutThread { number, name: None, id: std::thread::current().id(), os_id: 0 }
    }

    /// Appends notes to `chunk`, as the thread of this number does, and exchanges it when it is full.
    fn append(store: &Store, number: u64, chunk: &mut Arc<Chunk>, values: std::ops::Range<u64>) {
        for value in values {
            let words = Note::Events(value).encode(store.clock.ticks());
            if !chunk.push(words) {
                *chunk = store.exchange(number);
                assert!(chunk.push(words));
            }
        }
    }

    /// Returns the values of a thread's notes, and how many were dropped.
    fn values(store: &Store, number: u64) -> (Vec<u64>, u64) {
        let threads = store.snapshot().1;
        let thread = threads.iter().find(|thread| thread.about.number == number).expect("it is listed");
        let value = |(_, note): &(u64, Note)| match note {
            Note::Events(value) => *value,
            other => panic!("{other:?}"),
        };
        (thread.notes.iter().map(value).collect(), thread.dropped)
    }

    #[test]
    fn the_oldest_notes_of_all_threads_give_way_and_the_current_chunks_stay() {
        let store = Store::new(Duration::MAX, 3 * CHUNK_SIZE);
        let many = NOTES as u64;
        let (mut idle, mut busy) = (store.add(about(1)), store.add(about(2)));
        append(&store, 1, &mut idle, 0..many + 1);
        append(&store, 2, &mut busy, 0..10 * many + 1);
        // Three full chunks are kept, and the chunks in use.
        assert_eq!(values(&store, 1), (vec![many], many));
        assert_eq!(values(&store, 2), ((7 * many..=10 * many).collect(), 7 * many));
    }

    #[test]
    fn old_notes_are_dropped_before_the_memory_is_used_up() {
        let many = NOTES as u64;
        for (min_age, kept) in [(Duration::ZERO, 1), (Duration::MAX, 4)] {
            let store = Store::new(min_age, 100 * CHUNK_SIZE);
            let mut chunk = store.add(about(1));
            for round in 0..5 {
                append(&store, 1, &mut chunk, round * many..(round + 1) * many);
                std::thread::sleep(Duration::from_millis(1));
            }
            let (values, dropped) = values(&store, 1);
            assert_eq!((values.len() as u64, dropped), ((kept + 1) * many, (4 - kept) * many));
            assert!(values.is_sorted() && values.last() == Some(&(5 * many - 1)));
        }
    }

    #[test]
    fn a_thread_that_comes_back_goes_on_and_one_without_notes_is_forgotten() {
        let store = Store::new(Duration::MAX, CHUNK_SIZE);
        let mut first = store.add(about(1));
        append(&store, 1, &mut first, 0..3);
        drop(first);
        drop(store.add(about(2)));
        let mut again = store.add(about(1));
        append(&store, 1, &mut again, 3..4);
        assert_eq!(values(&store, 1), (vec![0, 1, 2, 3], 0));
        assert_eq!(store.snapshot().1.len(), 1);
    }

    /// Fails if a chunk is emptied while a snapshot has a reference to it.
    #[test]
    fn a_chunk_that_is_read_is_not_emptied() {
        let store = Store::new(Duration::MAX, CHUNK_SIZE);
        let mut chunk = store.add(about(1));
        let first = chunk.clone();
        append(&store, 1, &mut chunk, 0..4 * NOTES as u64);
        // SAFETY: `append` has encoded them.
        let notes = first.read().into_iter().map(|words| unsafe { Note::decode(words) }.1);
        assert!(notes.eq((0..NOTES as u64).map(Note::Events)));
    }
}
