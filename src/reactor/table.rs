//! [`Table`]: values that threads own in turn. A walk through it visits the values that are in use, and not
//! those that were in use once.
//!
//! The values never move, and are freed with the table. They are in blocks of [`PER_BLOCK`], and the blocks
//! in a list that only grows. One atomic word of each block says which of its values are in use, so a walk
//! reads a word for each block, and nothing of the values that are not in use.
//!
//! # The word
//!
//! Bit `n` says that value `n` of the block is *owned*, and bit `PER_BLOCK + n` that it is *left*: its last
//! owner has gone, and may have left something in it.
//!
//! | owned | left | the value | next |
//! |---|---|---|---|
//! | no | no | is not in use: there is nothing in it | `claim`: owned |
//! | yes | no | has an owner, the only thread that puts something in | `release`: not in use, or left |
//! | no | yes | is left, perhaps with something in it | `claim`: both, then owned; `free_if`: both |
//! | yes | yes | is looked at by its next owner, or in `free_if` | owned; or not in use, or left |
//!
//! # Why a walk misses nothing
//!
//! - **What is in a value is found.** A value gets something from its owner only, while it is owned, and
//!   without an owner it has less and less. So it is empty for good when its owner finds it empty, and only
//!   an owner takes it out of use: `release` does, if there is nothing in it, and so does `free_if`, which
//!   owns the value for that moment.
//! - **A thread that finds a value left finds what was left.** It reads the word with Acquire, which pairs
//!   with the Release of `release`.
//! - **No value stays in use for nothing.** One that is left and empty is taken out of use by the next thread
//!   that comes by and calls `free_if`.
//! - **A value is left until it has the next owner.** A thread in `free_if` clears the bit in the step that
//!   ends its ownership, so `is_any_left` does not miss what that thread puts back.

use std::iter;
use std::sync::OnceLock;

use crate::sync::{AtomicU64, Ordering};

/// The number of values that one word is for.
const PER_BLOCK: usize = u32::BITS as usize;

/// Values that threads own in turn.
#[derive(Debug)]
pub(super) struct Table<T>(Block<T>);

/// Some values of a table, and the way to the next ones.
#[derive(Debug)]
// The word and the way to the next block are on one cache line, and apart from what else is written.
#[repr(C, align(128))]
struct Block<T> {
    word: AtomicU64,
    next: OnceLock<Box<Block<T>>>,
    values: [OnceLock<Box<T>>; PER_BLOCK],
}

/// A value of a table, and its place there.
#[derive(Debug)]
pub(super) struct TableEntry<'a, T> {
    block: &'a Block<T>,
    /// Its place in the table.
    pub(super) number: usize,
    pub(super) value: &'a T,
}

/// A walk through the values in use.
pub(super) struct InUse<'a, T> {
    block: &'a Block<T>,
    /// The number of the block's first value.
    first: usize,
    /// Those of the block's values that come next: a bit for each.
    which: u32,
}

// Not derived: that would ask the same of the values.
impl<T> Copy for TableEntry<'_, T> {}

impl<T> Clone for TableEntry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

/// Returns which values are owned by this word: a bit for each.
fn owned(word: u64) -> u32 {
    word as u32
}

/// Returns which values are left by this word: a bit for each.
fn left(word: u64) -> u32 {
    (word >> u32::BITS) as u32
}

/// Returns the bits of a word that say that this value is owned, and that it is left.
fn bits(number: usize) -> (u64, u64) {
    let owned = 1 << (number % PER_BLOCK);
    (owned, owned << u32::BITS)
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self(Block::new())
    }

    /// Makes the calling thread the owner of the first value that has none. `new` makes a value if there is
    /// none yet.
    pub(super) fn claim(&self, new: impl Fn() -> T) -> TableEntry<'_, T> {
        let (mut block, mut first) = (&self.0, 0);
        loop {
            let mut word = block.word.load(Ordering::Relaxed);
            while owned(word) != u32::MAX {
                let number = owned(word).trailing_ones() as usize;
                word = block.claim(number);
                let (owned, left) = bits(number);
                if word & owned != 0 {
                    continue;
                }
                if word & left != 0 {
                    // ORDER: Relaxed suffices: what is left is this thread's by now, which is awake.
                    block.word.fetch_and(!left, Ordering::Relaxed);
                }
                let value = block.values[number].get_or_init(|| Box::new(new()));
                return TableEntry { block, number: first + number, value };
            }
            (block, first) = (block.next.get_or_init(|| Box::new(Block::new())), first + PER_BLOCK);
        }
    }

    /// Returns the values in use.
    pub(super) fn in_use(&self) -> InUse<'_, T> {
        InUse { block: &self.0, first: 0, which: self.0.in_use() }
    }

    /// Returns the next value in use; the first one comes after the last. `None` if none is in use.
    #[inline]
    pub(super) fn after<'a>(&'a self, entry: TableEntry<'a, T>) -> Option<TableEntry<'a, T>> {
        let (block, place) = (entry.block, entry.number % PER_BLOCK);
        let later = !1 << place;
        let mut later = InUse { block, first: entry.number - place, which: block.in_use() & later };
        later.next().or_else(|| self.in_use().next())
    }

    /// Returns all values, also those that are not in use.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.blocks().flat_map(|block| block.values.iter().filter_map(OnceLock::get)).map(|value| &**value)
    }

    /// Returns whether a value is left, perhaps with something in it.
    #[inline]
    pub(super) fn is_any_left(&self) -> bool {
        self.blocks().any(|block| left(block.word.load(Ordering::Relaxed)) != 0)
    }

    fn blocks(&self) -> impl Iterator<Item = &Block<T>> {
        iter::successors(Some(&self.0), |block| block.next.get().map(|next| &**next))
    }
}

impl<T> Block<T> {
    fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            next: OnceLock::new(),
            values: [const { OnceLock::new() }; PER_BLOCK],
        }
    }

    /// Returns which values are in use: a bit for each.
    #[inline]
    fn in_use(&self) -> u32 {
        // ORDER: Acquire pairs with the Release of `release`: what was left in the values.
        let word = self.word.load(Ordering::Acquire);
        owned(word) | left(word)
    }

    /// Makes the calling thread the owner of this value, unless it has one. Returns the word as it was.
    fn claim(&self, number: usize) -> u64 {
        // ORDER: Acquire pairs with the Release of `release`: the value as its last owner left it.
        self.word.fetch_or(bits(number).0, Ordering::Acquire)
    }
}

impl<'a, T> Iterator for InUse<'a, T> {
    type Item = TableEntry<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<TableEntry<'a, T>> {
        loop {
            while self.which != 0 {
                let place = self.which.trailing_zeros() as usize;
                self.which &= self.which - 1;
                // One that is not there yet has an owner that is about to make it, and nothing in it.
                if let Some(value) = self.block.values[place].get() {
                    return Some(TableEntry { block: self.block, number: self.first + place, value });
                }
            }
            self.block = self.block.next.get()?;
            (self.first, self.which) = (self.first + PER_BLOCK, self.block.in_use());
        }
    }
}

impl<T> TableEntry<'_, T> {
    /// Ends the ownership of the calling thread. `is_left` is true if something may be left in the value.
    pub(super) fn release(self, is_left: bool) {
        let (owned, left) = bits(self.number);
        let left_now = if is_left { left } else { 0 };
        let release = |word| Some(word & !(owned | left) | left_now);
        // ORDER: Release pairs with the Acquire of `claim` and `in_use`: the value as this thread leaves it.
        let released = self.block.word.fetch_update(Ordering::Release, Ordering::Relaxed, release);
        debug_assert!(released.is_ok_and(|word| word & owned != 0), "only the owner ends its ownership");
    }

    /// Takes the value out of use if it has no owner, and `is_empty`.
    pub(super) fn free_if(self, is_empty: impl FnOnce(&T) -> bool) {
        let is_owned = |word| word & bits(self.number).0 != 0;
        if !is_owned(self.block.word.load(Ordering::Relaxed)) && !is_owned(self.block.claim(self.number)) {
            self.release(!is_empty(self.value));
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// More than two blocks have room for.
    const MANY: usize = 2 * PER_BLOCK + 6;

    fn numbers(table: &Table<usize>) -> Vec<usize> {
        table.in_use().map(|entry| entry.number).collect()
    }

    #[test]
    fn a_walk_visits_what_is_owned_or_left() {
        let table = Table::new();
        let entries: Vec<_> = (0..MANY).map(|_| table.claim(|| 0)).collect();
        assert_eq!(numbers(&table), (0..MANY).collect::<Vec<_>>());
        for entry in entries.iter().filter(|entry| entry.number % 3 != 0) {
            entry.release(entry.number % 3 == 1);
        }
        let expected: Vec<_> = (0..MANY).filter(|number| number % 3 != 2).collect();
        assert_eq!(numbers(&table), expected);
        for entry in entries {
            let next = expected.iter().find(|number| **number > entry.number).unwrap_or(&0);
            assert_eq!(table.after(entry).map(|next| next.number), Some(*next), "after {}", entry.number);
        }
        assert_eq!(table.all().count(), MANY);
    }

    #[test]
    fn the_first_value_without_an_owner_is_claimed() {
        let table = Table::new();
        let entries: Vec<_> = (0..MANY).map(|_| table.claim(|| 0)).collect();
        for (number, is_left) in [(3, true), (PER_BLOCK, false), (MANY - 1, true)] {
            entries[number].release(is_left);
        }
        let claimed = [(); 4].map(|()| table.claim(|| 0).number);
        assert_eq!(claimed, [3, PER_BLOCK, MANY - 1, MANY]);
        assert!(!table.is_any_left(), "each one has an owner");
    }

    #[test]
    fn what_is_left_is_freed_when_it_is_empty() {
        let table = Table::new();
        let [owned, left] = [(); 2].map(|()| table.claim(|| 0));
        left.release(true);
        for (is_empty, expected) in [(false, vec![0, 1]), (true, vec![0])] {
            [owned, left].iter().for_each(|entry| entry.free_if(|_| is_empty));
            assert_eq!(numbers(&table), expected);
            assert_eq!(table.is_any_left(), !is_empty);
        }
    }
}
