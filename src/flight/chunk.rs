//! [`Chunk`]: a list of notes to which one thread appends while others read.
//!
//! The writer stores the words of a note and then the new length. A reader loads the length and then the
//! words of the notes below it. The words of a note are written once, before the length that includes the
//! note, so a reader that has seen this length sees the words as they are. No reader sees half a note.
//!
//! An owner with the only reference may [empty](Chunk::clear) a chunk, so a chunk that a snapshot reads is
//! never emptied.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// The number of notes in a chunk: few enough that a chunk for each of a thousand threads is no burden, and
/// so many that the lock of the store costs a note next to nothing.
pub(super) const NOTES: usize = if cfg!(paceline_loom) { 2 } else { 680 };

/// A note in three words.
pub(super) type Words = [u64; 3];

/// The size of a chunk in memory.
pub(super) const CHUNK_SIZE: usize = size_of::<Words>() * NOTES;

#[derive(Debug)]
pub(super) struct Chunk {
    len: AtomicUsize,
    words: Box<[[AtomicU64; 3]]>,
}

impl Chunk {
    pub(super) fn new() -> Self {
        let words = std::iter::repeat_with(|| [(); 3].map(|()| AtomicU64::new(0))).take(NOTES);
        Self { len: AtomicUsize::new(0), words: words.collect() }
    }

    /// Appends a note. Returns false, and appends nothing, if the chunk is full. One thread at a time may
    /// call this; two at once would lose notes.
    #[inline]
    pub(super) fn push(&self, note: Words) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        let Some(words) = self.words.get(len) else { return false };
        for (word, value) in words.iter().zip(note) {
            word.store(value, Ordering::Relaxed);
        }
        // ORDER: Release pairs with the Acquire of `read`: a reader of this length sees the words above.
        self.len.store(len + 1, Ordering::Release);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Returns the notes that were appended so far.
    pub(super) fn read(&self) -> Vec<Words> {
        // ORDER: Acquire pairs with the Release of `push`.
        let len = self.len.load(Ordering::Acquire);
        let read = |words: &[AtomicU64; 3]| [0, 1, 2].map(|word| words[word].load(Ordering::Relaxed));
        self.words[..len].iter().map(read).collect()
    }

    /// Returns the first word of the last note; `None` if there is none.
    pub(super) fn last(&self) -> Option<u64> {
        let last = self.len().checked_sub(1)?;
        Some(self.words[last][0].load(Ordering::Relaxed))
    }

    /// Removes all notes.
    pub(super) fn clear(&mut self) {
        self.len.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, paceline_loom))]
mod models {
    use super::*;
    use crate::sync::Arc;
    use crate::sync::models::model;
    use loom::thread;

    /// A reader sees the first notes of the writer, each of them whole, and nothing else.
    #[test]
    fn a_reader_sees_whole_notes() {
        model(|| {
            let chunk = Arc::new(Chunk::new());
            let all: Vec<Words> = (1..=NOTES as u64).map(|note| [note; 3]).collect();
            let reader = {
                let (chunk, all) = (chunk.clone(), all.clone());
                thread::spawn(move || {
                    let seen = chunk.read();
                    assert_eq!(seen, all[..seen.len()]);
                })
            };
            for note in 1..=3 {
                assert_eq!(chunk.push([note; 3]), note <= NOTES as u64);
            }
            assert_eq!(chunk.read(), all);
            reader.join().unwrap();
        });
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_takes_so_many_notes_and_is_used_again() {
        let mut chunk = Chunk::new();
        assert_eq!((chunk.last(), chunk.read()), (None, vec![]));
        for note in 0..NOTES as u64 {
            assert!(chunk.push([note, 1, 2]));
        }
        assert!(!chunk.push([9, 9, 9]));
        let read = chunk.read();
        assert_eq!((read.len(), read[7], chunk.last()), (NOTES, [7, 1, 2], Some(NOTES as u64 - 1)));
        chunk.clear();
        assert!(chunk.push([5, 6, 7]));
        assert_eq!(chunk.read(), [[5, 6, 7]]);
    }
}
