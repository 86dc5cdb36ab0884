//! The memory of the records, in which sources live. This memory never moves and is freed with the reactor,
//! so the leader gets from an event's key to its record without a lock and without counting references.

use std::sync::OnceLock;

use super::readiness::Readiness;
use super::record::Record;
use super::{Direction, Key};
use crate::sync::{self, AtomicUsize, Mutex, Ordering};

/// Records in each of the first pages. Every [`DOUBLING`]th time the pages are twice as large, so at most a
/// quarter of all records is ahead of need.
const FIRST_PAGE: usize = 8;
const DOUBLING: usize = 4;
const PAGES: usize = 26 * DOUBLING;

/// All records of a reactor.
#[derive(Debug)]
pub(super) struct Records {
    pages: [OnceLock<Box<[Record]>>; PAGES],
    free: Mutex<Free>,
    /// The number of registered sources.
    in_use: AtomicUsize,
}

#[derive(Debug)]
struct Free {
    /// Freed records. The last one freed is the next one used.
    used: Vec<u32>,
    /// The first record that was never used.
    fresh: u32,
}

impl Records {
    /// Makes a list without records: [`acquire`](Self::acquire) allocates their pages.
    pub(super) fn new() -> Self {
        Self {
            pages: [const { OnceLock::new() }; PAGES],
            free: Mutex::new(Free { used: Vec::new(), fresh: 0 }),
            in_use: AtomicUsize::new(0),
        }
    }

    /// Returns the number of registered sources.
    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Retires a source, which counts no longer, and frees its record; if a thread still has a cell of it,
    /// that thread frees it.
    pub(super) fn retire(&self, key: Key) {
        self.in_use.fetch_sub(1, Ordering::Relaxed);
        if self.get(key.index()).readiness.retire() {
            self.free(key);
        }
    }

    /// Opens a record for a new source, and counts the source. Takes the record that was freed last, else the
    /// first unused one, for which this may allocate a page.
    pub(super) fn acquire(&self) -> Key {
        let index = {
            let mut free = sync::lock(&self.free);
            free.used.pop().unwrap_or_else(|| {
                let index = free.fresh;
                free.fresh += 1;
                let (page, _) = Self::page_of(index);
                let records = || (0..FIRST_PAGE << (page / DOUBLING)).map(|_| Record::new()).collect();
                self.pages[page].get_or_init(records);
                index
            })
        };
        self.in_use.fetch_add(1, Ordering::Relaxed);
        Key::new(index, self.get(index).readiness.open())
    }

    /// Frees the record of a source that is gone, for its next source. The thread that the record told to
    /// free it calls this.
    #[cold]
    pub(super) fn free(&self, key: Key) {
        self.get(key.index()).clear();
        sync::lock(&self.free).used.push(key.index());
    }

    /// Returns all registered sources, and the readiness of each. Reads them one after the other, so not all
    /// of one moment; misses those whose records are first used meanwhile.
    pub(super) fn live(&self) -> impl Iterator<Item = (Key, Readiness)> {
        let used = sync::lock(&self.free).fresh;
        let source = |index| {
            let now = self.get(index).readiness.snapshot();
            now.is_open().then(|| (Key::new(index, now.generation()), now))
        };
        (0..used).filter_map(source)
    }

    /// Returns whether a task waits for any of them, or has waited and given up.
    pub(super) fn any_awaited(&self) -> bool {
        self.live().any(|(_, now)| Direction::BOTH.iter().any(|direction| now.is_armed(*direction)))
    }

    /// Returns the record with this index. May panic if the index was never given out.
    #[inline]
    pub(super) fn get(&self, index: u32) -> &Record {
        let (page, offset) = Self::page_of(index);
        &self.pages[page].get().expect("a record's page exists once its index was given out")[offset]
    }

    /// Returns the page of a record, and its place in the page.
    #[inline]
    fn page_of(index: u32) -> (usize, usize) {
        let shifted = index as usize + FIRST_PAGE * DOUBLING;
        let doubled = shifted.ilog2() - (FIRST_PAGE * DOUBLING).ilog2();
        // The size of the page as a power of two.
        let bits = doubled + FIRST_PAGE.ilog2();
        (doubled as usize * DOUBLING + (shifted >> bits) - DOUBLING, shifted & ((1 << bits) - 1))
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn places_are_dense_and_never_shared() {
        assert_eq!([0, 7, 8].map(Records::page_of), [(0, 0), (0, 7), (1, 0)]);
        assert_eq!([31, 32, 47, 48].map(Records::page_of), [(3, 7), (4, 0), (4, 15), (5, 0)]);
        assert_eq!([95, 96, 223, 224].map(Records::page_of), [(7, 15), (8, 0), (11, 31), (12, 0)]);
        assert_eq!(Records::page_of((1 << 31) - 33), (PAGES - 1, (1 << 28) - 1));
    }

    /// Fails if a page is as large as all pages before it.
    #[test]
    fn no_more_than_a_quarter_of_the_records_is_ahead_of_need() {
        let (mut capacity, mut pages) = (0, 0);
        for index in 0..1_000_000 {
            let (page, _) = Records::page_of(index);
            if page == pages {
                capacity += FIRST_PAGE << (page / DOUBLING);
                pages += 1;
            }
            assert!(capacity <= (index as usize + 1) * 5 / 4 + FIRST_PAGE, "{capacity} for {index}");
        }
    }

    #[test]
    fn a_slot_comes_back_with_another_generation() {
        let records = Records::new();
        let gone = records.acquire();
        records.retire(gone);
        let other = records.acquire();
        assert_eq!(other.index(), gone.index());
        assert_ne!(other.generation(), gone.generation());
        assert_eq!(records.in_use(), 1);
    }

    #[test]
    fn no_two_sources_share_a_slot_whichever_page_it_is_on() {
        let records = Records::new();
        assert!((0..200).map(|_| records.acquire().index()).eq(0..200));
        let mut places: Vec<_> = (0..200).map(|index| std::ptr::from_ref(records.get(index))).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 200);
        let lengths = records.pages.iter().map_while(OnceLock::get).map(|page| page.len());
        assert!(lengths.eq([[8; 4], [16; 4], [32; 4]].concat()));
    }

    #[test]
    fn only_registered_sources_are_live_and_only_those_with_a_waiter_are_awaited() {
        use super::super::readiness::Wait;
        use super::super::readiness::{Proof, Until};
        let records = Records::new();
        let live = || records.live().map(|(key, _)| key).collect::<Vec<_>>();
        let keys: Vec<_> = (0..3).map(|_| records.acquire()).collect();
        assert_eq!((live(), records.in_use()), (keys.clone(), 3));
        assert!(!records.any_awaited());

        let record = records.get(1);
        record.readiness.clear(Direction::Write, 0, Proof::WouldBlock);
        let entered = record.enter(
            Direction::Write,
            Until::Ready,
            std::task::Waker::noop(),
            false,
            Clone::clone,
            || panic!("free"),
        );
        assert_eq!(entered, Wait::Waiting);
        assert!(records.any_awaited());

        records.retire(keys[1]);
        assert_eq!((live(), records.in_use()), (vec![keys[0], keys[2]], 2));
        assert!(!records.any_awaited());
    }
}
