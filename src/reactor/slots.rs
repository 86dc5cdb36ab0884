//! The slots in which sources live: memory that moves never and is freed with the reactor, so that the leader
//! can go from an event's key to its slot without a lock and without counting references.

use std::sync::OnceLock;
use std::task::Waker;

use super::readiness::{Readiness, Release};
use super::waiters::Waiters;
use super::{Direction, Key};
use crate::sync::{self, AtomicU32, AtomicUsize, Mutex, Ordering, ProtocolCell};
use crate::waking;

/// Slots in the first page; each further page has twice as many.
const FIRST_PAGE: usize = 32;
const PAGES: usize = 26;

/// What the reactor keeps of one source.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) readiness: Readiness,
    /// A waker for each direction, owned by whoever holds the direction's BUSY flag.
    wakers: [ProtocolCell<Option<Waker>>; 2],
    /// Those who wait beside the cell's owner.
    pub(super) lists: [Waiters; 2],
    /// The tick after which a `poll_readable` or `poll_writable` in progress is over; see [`super::source`].
    pub(super) blind: [AtomicU32; 2],
    /// In which turn of its thread a waiter last came to the cell.
    pub(super) turns: [AtomicU32; 2],
}

// SAFETY: the wakers are reached only under the BUSY flag; the rest is atomic.
unsafe impl Sync for Slot {}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            readiness: Readiness::new(),
            wakers: [ProtocolCell::new(None), ProtocolCell::new(None)],
            lists: Default::default(),
            blind: [AtomicU32::new(0), AtomicU32::new(0)],
            turns: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// # Safety
    ///
    /// The caller has the direction's BUSY flag.
    #[inline]
    pub(super) unsafe fn waker<R>(&self, direction: Direction, f: impl FnOnce(&mut Option<Waker>) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe { self.wakers[direction as usize].with_mut(f) }
    }
}

/// All slots of a reactor.
#[derive(Debug)]
pub(super) struct Slots {
    pages: [OnceLock<Box<[Slot]>>; PAGES],
    free: Mutex<Free>,
    in_use: AtomicUsize,
}

#[derive(Debug)]
struct Free {
    /// Slots that were used before; the last one freed is the next one used.
    used: Vec<u32>,
    /// The first slot that was never used.
    fresh: u32,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            pages: [const { OnceLock::new() }; PAGES],
            free: Mutex::new(Free { used: Vec::new(), fresh: 0 }),
            in_use: AtomicUsize::new(0),
        }
    }

    /// Sources registered right now.
    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// A slot for a new source, and its generation.
    pub(super) fn acquire(&self) -> (u32, u32) {
        let index = {
            let mut free = sync::lock(&self.free);
            free.used.pop().unwrap_or_else(|| {
                let index = free.fresh;
                free.fresh += 1;
                let (page, _) = Self::place(index);
                self.pages[page].get_or_init(|| (0..FIRST_PAGE << page).map(|_| Slot::new()).collect());
                index
            })
        };
        self.in_use.fetch_add(1, Ordering::Relaxed);
        (index, self.get(index).readiness.open())
    }

    /// Retires the source of this slot; the slot is used again once no thread has one of its cells.
    pub(super) fn retire(&self, index: u32) {
        self.in_use.fetch_sub(1, Ordering::Relaxed);
        let verdict = self.get(index).readiness.retire();
        self.free_if(index, verdict);
    }

    /// Frees the slot if the verdict says that this thread should.
    #[inline]
    pub(super) fn free_if(&self, index: u32, verdict: Release) {
        if verdict == Release::Free {
            self.free(index);
        }
    }

    #[cold]
    fn free(&self, index: u32) {
        let slot = self.get(index);
        for direction in Direction::BOTH {
            // SAFETY: the source is gone and no thread had a cell, so nobody else can get at this one.
            waking::discard(unsafe { slot.waker(direction, Option::take) });
            slot.blind[direction as usize].store(0, Ordering::Relaxed);
        }
        sync::lock(&self.free).used.push(index);
    }

    /// The keys of all sources that are registered.
    pub(super) fn live(&self) -> Vec<Key> {
        let used = sync::lock(&self.free).fresh;
        let key = |index| {
            let now = self.get(index).readiness.snapshot();
            now.is_open().then(|| Key::new(index, now.generation()))
        };
        (0..used).filter_map(key).collect()
    }

    /// Whether somebody waits for any of them, or has waited and given up.
    pub(super) fn any_awaited(&self) -> bool {
        let used = sync::lock(&self.free).fresh;
        (0..used).any(|index| {
            let now = self.get(index).readiness.snapshot();
            now.is_open() && Direction::BOTH.iter().any(|direction| now.is_armed(*direction))
        })
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &Slot {
        let (page, offset) = Self::place(index);
        &self.pages[page].get().expect("a slot's page exists once its index was given out")[offset]
    }

    #[inline]
    fn place(index: u32) -> (usize, usize) {
        let shifted = index as usize + FIRST_PAGE;
        let page = (shifted.ilog2() - FIRST_PAGE.ilog2()) as usize;
        (page, shifted - (FIRST_PAGE << page))
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_are_dense_and_never_shared() {
        assert_eq!(Slots::place(0), (0, 0));
        assert_eq!(Slots::place(31), (0, 31));
        assert_eq!(Slots::place(32), (1, 0));
        assert_eq!(Slots::place(95), (1, 63));
        assert_eq!(Slots::place(96), (2, 0));
    }

    #[test]
    fn a_slot_comes_back_with_another_generation() {
        let slots = Slots::new();
        let (index, generation) = slots.acquire();
        slots.retire(index);
        let (again, other) = slots.acquire();
        assert_eq!(again, index);
        assert_ne!(other, generation);
        assert_eq!(slots.in_use(), 1);
    }
}
