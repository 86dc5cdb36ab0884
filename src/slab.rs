//! [`Slab`]: entries that keep their numbers, in memory that shrinks again after a peak.
//!
//! An entry cannot move, because its owner knows it by its number. So once three quarters of all entries are
//! free, the upper half is *closed*: its free entries are given to no new value. When the last of the others
//! is removed, the memory of the half is freed. If the lower half fills up before that, the upper one is
//! opened again.
//!
//! Closing and opening look at all entries. But the number of entries in use changes by a quarter of all
//! entries, at least, from one to the other, so an insertion or removal takes a constant number of steps on
//! average.

use std::mem;
use std::ops::{Deref, DerefMut};

/// The number of no entry.
const NONE: u32 = u32::MAX;
/// A slab of so few entries stays as it is.
const SMALL: usize = 64;

/// An entry of a [`Slab`]: one in use, or a free one, which keeps a number for the slab.
pub(crate) trait SlabEntry {
    type Value;
    /// Frees an entry that is in use, and returns what is in it.
    fn free(&mut self, number: u32) -> Self::Value;
    /// Returns the number in a free entry.
    fn number(&mut self) -> Option<&mut u32>;
}

/// Entries, by their numbers. Derefs to all of them, also the free ones.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<T>,
    /// The first of the free entries that are not closed, or [`NONE`]. Each has the number of the next.
    free: u32,
    used: usize,
    /// The first closed entry, or [`NONE`].
    closed: u32,
}

impl<T: SlabEntry> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), free: NONE, used: 0, closed: NONE }
    }

    /// Puts an entry that is in use into a free place, and returns its number. Panics if there are 2^32 - 1
    /// entries.
    #[inline]
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        self.used += 1;
        if self.free == NONE && mem::replace(&mut self.closed, NONE) != NONE {
            self.chain(self.entries.len());
        }
        let at = self.free;
        if let Some(place) = self.entries.get_mut(at as usize) {
            self.free = place.number().map_or(NONE, |next| *next);
            *place = entry;
            return at;
        }
        assert!(self.entries.len() < NONE as usize, "too many entries");
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// Frees an entry that is in use, and returns what was in it.
    #[inline]
    pub(crate) fn remove(&mut self, at: u32) -> T::Value {
        self.used -= 1;
        let next = if at < self.closed { mem::replace(&mut self.free, at) } else { NONE };
        let value = self.entries[at as usize].free(next);
        if at >= self.closed || self.is_sparse() {
            self.shrink();
        }
        value
    }

    /// Returns whether three quarters of the entries are free, and none is closed.
    fn is_sparse(&self) -> bool {
        self.used < self.entries.len() / 4 && self.closed == NONE && self.entries.len() > SMALL
    }

    /// Removes the closed entries that are free and behind all others. When none is left, frees the memory,
    /// and closes the upper half of the others if most of them are free, too.
    #[cold]
    fn shrink(&mut self) {
        loop {
            while self.entries.len() > self.closed as usize {
                if self.entries.last_mut().is_some_and(|last| last.number().is_none()) {
                    return;
                }
                self.entries.pop();
            }
            self.closed = NONE;
            self.entries.shrink_to_fit();
            if !self.is_sparse() {
                return;
            }
            self.closed = self.entries.len() as u32 / 2;
            self.chain(self.closed as usize);
        }
    }

    /// Makes the free entries before this number those that are given out, from the first to the last.
    fn chain(&mut self, end: usize) {
        self.free = NONE;
        for (at, entry) in self.entries[..end].iter_mut().enumerate().rev() {
            if let Some(next) = entry.number() {
                *next = mem::replace(&mut self.free, at as u32);
            }
        }
    }
}

impl<T> SlabEntry for Result<T, u32> {
    type Value = Self;

    #[inline]
    fn free(&mut self, number: u32) -> Self {
        mem::replace(self, Err(number))
    }

    #[inline]
    fn number(&mut self) -> Option<&mut u32> {
        self.as_mut().err()
    }
}

impl<T> Deref for Slab<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<T> DerefMut for Slab<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Numbers = Slab<Result<u64, u32>>;

    fn peak(count: u64) -> (Numbers, Vec<u32>) {
        let mut slab = Slab::new();
        let at = (0..count).map(|number| slab.insert(Ok(number))).collect();
        (slab, at)
    }

    /// Waves of insertions and removals, against a map.
    #[test]
    fn an_entry_is_found_at_its_number_until_it_is_removed() {
        let (mut slab, mut model, mut state) = (Slab::new(), BTreeMap::new(), 0x9E37_79B9_u64);
        for step in 0..if cfg!(miri) { 3_000 } else { 200_000 } {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let is_rising = step / (20_000 >> (step % 3)) % 2 == 0;
            if model.is_empty() || (state % 8 < 6) == is_rising {
                assert_eq!(model.insert(slab.insert(Ok(state)), state), None);
            } else {
                let from = state as u32 % slab.len() as u32;
                let (&at, _) = model.range(from..).chain(&model).next().unwrap();
                assert_eq!(slab.remove(at), Ok(model.remove(&at).unwrap()));
            }
            assert_eq!(slab.used, model.len());
        }
        assert!(model.iter().all(|(&at, number)| slab[at as usize] == Ok(*number)));
        assert_eq!(slab.iter().filter(|entry| entry.is_ok()).count(), model.len());
    }

    #[test]
    fn after_a_peak_the_memory_is_freed() {
        for backwards in [false, true] {
            let (mut slab, mut at) = peak(10_000);
            if backwards {
                at.reverse();
            }
            at.into_iter().for_each(|at| _ = slab.remove(at).unwrap());
            assert_eq!((slab.used, slab.len() <= SMALL, slab.entries.capacity() <= SMALL), (0, true, true));
        }
    }

    #[test]
    fn an_entry_that_stays_keeps_what_is_before_it_and_no_new_one_gets_there() {
        let (mut slab, mut at) = peak(4_096);
        let last = at.remove(3_000);
        at.drain(100..).for_each(|at| _ = slab.remove(at).unwrap());
        assert_eq!(slab.len(), 3_001);
        for round in 0..10_000 {
            let number = slab.insert(Ok(round));
            assert!(number < 2_048);
            slab.remove(number).unwrap();
        }
        slab.remove(last).unwrap();
        assert!(slab.len() <= 512 && slab.entries.capacity() <= 512, "{}", slab.len());
        assert!(at.into_iter().all(|at| slab.remove(at).is_ok()));
    }

    #[test]
    fn a_half_that_was_closed_is_opened_if_it_is_needed() {
        let (mut slab, at) = peak(4_096);
        at[..4_095].iter().for_each(|at| _ = slab.remove(*at).unwrap());
        (0..4_095).for_each(|number| assert!(slab.insert(Ok(number)) < 4_095));
        assert_eq!((slab.used, slab.len()), (4_096, 4_096));
        assert_eq!(slab.insert(Ok(0)), 4_096);
    }
}
