//! [`Store`]: the notes of all threads that one recorder has.
//!
//! Notes are kept for a minimal age, as far as the memory allows: a full chunk is emptied and used again if
//! its last note is older than that, or if all memory is used. A thread that has not filled its chunk keeps
//! it. So the last notes of a thread that blocks are there, however long it blocks.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, SystemTime};

use super::chunk::{CHUNK_SIZE, Chunk, Words};
use super::clock::NoteClock;
use super::forks;
use super::note::{Note, time};

/// The notes of a recorder.
#[derive(Debug)]
pub(crate) struct Store {
    /// How many forks there were when it was made: in the child of a later one, the lock may be held for
    /// ever.
    forks: u32,
    pub(super) clock: NoteClock,
    /// When the recording ended, in ticks.
    ended: OnceLock<u64>,
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
    /// The numbers of the threads that have left and not come back, by the order in which they left.
    left: BTreeMap<u64, u64>,
    /// How many threads have left so far.
    departures: u64,
}

/// The notes of one thread.
#[derive(Debug)]
struct ThreadNotes {
    about: AboutThread,
    /// The oldest first.
    full: VecDeque<Arc<Chunk>>,
    current: Arc<Chunk>,
    /// How often the thread is in the runtime: its `block_on`s may be nested, with another runtime in
    /// between.
    entries: usize,
    /// The key in `NotesByThread::left`, if the thread has left.
    departure: Option<u64>,
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
    /// Creates a store without notes. Its full chunks take up to `max_bytes`. If it `is_simulated`, notes
    /// have the time of the simulation on this thread.
    pub(crate) fn new(min_age: Duration, max_bytes: usize, is_simulated: bool) -> Self {
        Self {
            forks: forks::number(),
            clock: NoteClock::start(is_simulated),
            ended: OnceLock::new(),
            started_at: SystemTime::now(),
            min_age,
            max_full: (max_bytes / CHUNK_SIZE).max(1),
            threads: Mutex::default(),
        }
    }

    /// Returns whether the store belongs to this process, and not to one from which it was forked.
    pub(super) fn is_here(&self) -> bool {
        self.forks == forks::number()
    }

    /// Notes that the recording has ended.
    pub(super) fn end(&self) {
        let _ = self.ended.set(self.clock.ticks());
    }

    fn lock(&self) -> MutexGuard<'_, NotesByThread> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the current thread, which has this number, or takes it back if it has left. Returns the chunk to
    /// which it appends.
    pub(super) fn add(&self, number: u64, about: impl FnOnce() -> AboutThread) -> Arc<Chunk> {
        let mut guard = self.lock();
        let threads = &mut *guard;
        let thread = threads.by_number.entry(number).or_insert_with(|| ThreadNotes {
            about: about(),
            full: VecDeque::new(),
            current: Arc::new(Chunk::new()),
            entries: 0,
            departure: None,
            dropped: 0,
        });
        thread.entries += 1;
        if let Some(departure) = thread.departure.take() {
            threads.left.remove(&departure);
        }
        thread.current.clone()
    }

    /// Notes that a thread has left, for each time that it was added. Its notes stay for as long as those in
    /// full chunks do.
    pub(super) fn leave(&self, number: u64) {
        let is_old = self.is_old();
        let mut guard = self.lock();
        let threads = &mut *guard;
        let thread = threads.by_number.get_mut(&number).expect("a thread that has not left is listed");
        thread.entries -= 1;
        if thread.entries > 0 {
            return;
        }
        if thread.full.is_empty() && thread.current.len() == 0 {
            threads.by_number.remove(&number);
            return;
        }
        thread.departure = Some(threads.departures);
        threads.left.insert(threads.departures, number);
        threads.departures += 1;
        threads.forget_departed(is_old);
    }

    /// Returns a check whether a chunk is to be dropped: by the number of chunks that no thread appends to,
    /// and the first word of its last note, if it has one.
    fn is_old(&self) -> impl Fn(usize, Option<u64>) -> bool + use<> {
        let (now, scale, min_age) = (self.clock.ticks(), self.clock.scale(), self.min_age);
        let max_full = self.max_full;
        let age = move |last: u64| Duration::from_nanos(scale.nanos(now.saturating_sub(time(last))));
        move |count, last| count > max_full || last.is_none_or(|last| age(last) > min_age)
    }

    /// Takes the full chunk of a thread that was added. Returns the one to which it appends from now on.
    #[cold]
    pub(super) fn exchange(&self, number: u64) -> Arc<Chunk> {
        let is_old = self.is_old();
        let mut threads = self.lock();
        threads.full.push_back(number);
        threads.forget_departed(&is_old);
        let mut empty = threads.drop_oldest(is_old);
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
    /// later than that. After the end of the recording, returns the time of the end. Returns nothing in a
    /// child of a fork.
    pub(crate) fn snapshot(&self) -> (u64, Vec<NotesOfThread>) {
        // First: what a thread did later may have followed something that the snapshot does not have.
        let taken_at = self.ended.get().copied().unwrap_or_else(|| self.clock.ticks());
        if !self.is_here() {
            return (0, Vec::new());
        }
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
    /// Drops the oldest full chunks while `is_old` returns true. Returns one of them.
    fn drop_oldest(&mut self, is_old: impl Fn(usize, Option<u64>) -> bool) -> Option<Arc<Chunk>> {
        let mut dropped = None;
        while let Some(number) = self.full.front() {
            let thread = self.by_number.get_mut(number).expect("a thread with a full chunk is listed");
            // The chunk of the thread that is exchanging its chunk may be listed before it is there.
            let Some(oldest) = thread.full.front() else { break };
            if !is_old(self.full.len() + self.left.len(), oldest.last()) {
                break;
            }
            thread.dropped += oldest.len() as u64;
            dropped = thread.full.pop_front();
            self.full.pop_front();
        }
        dropped
    }

    /// Forgets the threads that left first while `is_old` returns true for their last notes.
    fn forget_departed(&mut self, is_old: impl Fn(usize, Option<u64>) -> bool) {
        while let Some((&departure, &number)) = self.left.first_key_value() {
            let last = self.by_number.get(&number).and_then(|thread| thread.current.last());
            if !is_old(self.full.len() + self.left.len(), last) {
                break;
            }
            self.left.remove(&departure);
            self.by_number.remove(&number);
            self.full.retain(|other| *other != number);
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::super::chunk::NOTES;
    use super::*;

    fn add(store: &Store, number: u64) -> Arc<Chunk> {
        let about = || AboutThread { number, name: None, id: std::thread::current().id(), os_id: 0 };
        store.add(number, about)
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
        let store = Store::new(Duration::MAX, 3 * CHUNK_SIZE, false);
        let many = NOTES as u64;
        let (mut idle, mut busy) = (add(&store, 1), add(&store, 2));
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
            let store = Store::new(min_age, 100 * CHUNK_SIZE, false);
            let mut chunk = add(&store, 1);
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
        let store = Store::new(Duration::MAX, CHUNK_SIZE, false);
        let mut first = add(&store, 1);
        append(&store, 1, &mut first, 0..3);
        store.leave(1);
        drop(add(&store, 2));
        store.leave(2);
        let mut again = add(&store, 1);
        append(&store, 1, &mut again, 3..4);
        assert_eq!(values(&store, 1), (vec![0, 1, 2, 3], 0));
        assert_eq!(store.snapshot().1.len(), 1);
    }

    #[test]
    fn threads_that_have_left_take_no_more_memory_than_full_chunks() {
        let store = Store::new(Duration::MAX, 4 * CHUNK_SIZE, false);
        let mut stays = add(&store, 1);
        append(&store, 1, &mut stays, 0..1);
        for number in 2..30 {
            append(&store, number, &mut add(&store, number), 0..1);
            store.leave(number);
        }
        let numbers: Vec<_> = store.snapshot().1.iter().map(|thread| thread.about.number).collect();
        assert_eq!(numbers, [1, 26, 27, 28, 29]);
        // It has entered twice, and left once.
        append(&store, 2, &mut add(&store, 2), 0..1);
        let mut inside = add(&store, 2);
        store.leave(2);
        for number in 30..60 {
            append(&store, number, &mut add(&store, number), 0..1);
            store.leave(number);
        }
        append(&store, 2, &mut inside, 1..2 * NOTES as u64);
        assert_eq!(values(&store, 2).0.last(), Some(&(2 * NOTES as u64 - 1)));
        let brief = Store::new(Duration::ZERO, 4 * CHUNK_SIZE, false);
        append(&brief, 1, &mut add(&brief, 1), 0..1);
        std::thread::sleep(Duration::from_millis(1));
        brief.leave(1);
        assert!(brief.snapshot().1.is_empty());
    }

    /// Fails if a chunk is emptied while a snapshot has a reference to it.
    #[test]
    fn a_chunk_that_is_read_is_not_emptied() {
        let store = Store::new(Duration::MAX, CHUNK_SIZE, false);
        let mut chunk = add(&store, 1);
        let first = chunk.clone();
        append(&store, 1, &mut chunk, 0..4 * NOTES as u64);
        // SAFETY: `append` has encoded them.
        let notes = first.read().into_iter().map(|words| unsafe { Note::decode(words) }.1);
        assert!(notes.eq((0..NOTES as u64).map(Note::Events)));
    }
}
