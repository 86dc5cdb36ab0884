//! The readiness word: all that is known about one source, in one atomic.
//!
//! ```text
//!  63        44 43        28 27        12 11  10 9    5 4    0
//! | generation | write tick | read tick  | - |G | write | read |
//! ```
//!
//! Each direction has five flags:
//!
//! | flag | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `READY` | an operation is worth a try | [`event`](Readiness::event) | [`clear`](Readiness::clear) |
//! | `CUT` | something else than an empty (or full) buffer may cut a transfer short: an end, which no edge follows, or an urgent mark, with more behind it | `event` | `clear` after a `WouldBlock` |
//! | `ARMED` | the cell holds the waker of somebody who waits | [`settle`](Readiness::settle) | `event`, [`claim`](Readiness::claim) |
//! | `BUSY` | one thread has the cell to itself | `claim`, `event` | `settle`, [`release`](Readiness::release) |
//! | `LISTED` | somebody may wait on the list beside the cell | [`list`](Readiness::list) | `event` |
//!
//! The tick of a direction counts its events. It is what makes clearing safe (S7): a thread that saw
//! `WouldBlock` clears readiness only if no event came since it read the word. It wraps after 65 536 events of one
//! direction between two adjacent steps of one thread.
//!
//! The generation is part of each key; an event whose key has another one is of a source that is gone (S2, S3).
//! `G` (gone) says that the source was retired while a thread had a cell; that thread frees the record.
//!
//! Why no event is lost (LF6): an event either finds `ARMED` and wakes the waker, or it finds `BUSY` and advances
//! the tick, which the owner of the cell compares in `settle` (then it is [`Settled::Overtaken`]), or it finds
//! neither and leaves `READY` and the tick behind, which `claim` looks at before it takes the cell. All three are
//! compare-and-swaps on one word, so there is no fourth case.

use crate::sync::{AtomicU64, Ordering};

use super::Direction;
use super::marks::Marks;

const READY: u64 = 1;
const CUT: u64 = 2;
const ARMED: u64 = 4;
const BUSY: u64 = 8;
const LISTED: u64 = 16;
const DIRECTION_BITS: u32 = 5;
const GONE: u64 = 1 << 10;
const FLAGS: u64 = (1 << 12) - 1;
const TICK_SHIFT: [u32; 2] = [12, 28];
const GENERATION_SHIFT: u32 = 44;

/// How many bits of a generation a key carries. A key must fit into a `usize` beside the record's index.
pub(crate) const GENERATION_BITS: u32 = if usize::BITS == 64 { 64 - GENERATION_SHIFT } else { 10 };
const GENERATIONS: u64 = 1 << GENERATION_BITS;

/// In either direction.
const ANY_BUSY: u64 = flag(Direction::Read, BUSY) | flag(Direction::Write, BUSY);

const fn flag(direction: Direction, flag: u64) -> u64 {
    flag << (direction as u32 * DIRECTION_BITS)
}

/// What the operating system said about a source: in which directions it is ready, in which a short transfer proves
/// nothing, and what else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) read_cut: bool,
    pub(crate) write_cut: bool,
    pub(crate) marks: Marks,
}

impl Happened {
    /// As before an operation has proved otherwise.
    pub(crate) const EVERYTHING: Self = Self { read: true, write: true, ..Self::NOTHING };
    pub(crate) const NOTHING: Self =
        Self { read: false, write: false, read_cut: false, write_cut: false, marks: Marks::NONE };

    fn in_direction(self, direction: Direction) -> (bool, bool) {
        match direction {
            Direction::Read => (self.read, self.read_cut),
            Direction::Write => (self.write, self.write_cut),
        }
    }
}

/// When a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// As soon as an operation is worth a try.
    Ready,
    /// When an event has come since this tick: a source that is ready is made to report it.
    After(u16),
    /// When one has come since this tick by itself, where events do.
    Told(u16),
}

/// A copy of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    pub(crate) fn has(self, direction: Direction, until: Until) -> bool {
        match until {
            Until::Ready => self.0 & flag(direction, READY) != 0,
            Until::After(tick) | Until::Told(tick) => self.tick(direction) != tick,
        }
    }

    pub(crate) fn tick(self, direction: Direction) -> u16 {
        (self.0 >> TICK_SHIFT[direction as usize]) as u16
    }

    pub(crate) fn is_armed(self, direction: Direction) -> bool {
        self.0 & flag(direction, ARMED | LISTED) != 0
    }

    pub(crate) fn is_open(self) -> bool {
        self.0 & GONE == 0
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    fn with_next_tick(self, direction: Direction) -> Self {
        let shift = TICK_SHIFT[direction as usize];
        let tick = u64::from(self.tick(direction).wrapping_add(1));
        Self(self.0 & !(0xffff << shift) | tick << shift)
    }
}

/// Whom an event concerns: the `ARMED` bit of a direction whose cell this thread now has, with a waker in it (wake it,
/// then [`Readiness::release`]), and the `LISTED` bit of one whose list is to be notified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Delivery(u64);

impl Delivery {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn has_cell(self, direction: Direction) -> bool {
        self.0 & flag(direction, ARMED) != 0
    }

    #[inline]
    pub(crate) fn has_list(self, direction: Direction) -> bool {
        self.0 & flag(direction, LISTED) != 0
    }
}

/// What came of an attempt to take the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Claim {
    /// No need to wait.
    Over,
    /// Another thread has the cell for a moment: try again later.
    Contended,
    /// The cell is this thread's until it settles; `occupied` if somebody else's waker may be waiting in it.
    Taken { tick: u16, occupied: bool },
}

/// What came of a cell's new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Settled {
    /// The waker in the cell will be woken by the next event.
    Armed,
    /// An event came meanwhile. The cell is still this thread's: wake who should know, then release it.
    Overtaken,
}

/// Who frees the record of a source that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Release {
    /// Nobody yet.
    Nothing,
    /// This thread.
    Free,
}

/// Whether readiness may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The operation said `WouldBlock`.
    WouldBlock,
    /// The operation moved less than it was asked to.
    ShortTransfer,
}

/// The word.
#[derive(Debug)]
pub(crate) struct Readiness(AtomicU64);

impl Readiness {
    /// The word of a record that no source uses yet.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(GONE))
    }

    // ORDER: `Acquire` on each successful change pairs with the `Release` of the change before it, so that
    // the owner of a cell sees what its previous owner wrote there.
    #[inline]
    fn change<R>(&self, mut f: impl FnMut(Snapshot) -> (Option<u64>, R)) -> R {
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            let (new, verdict) = f(Snapshot(now));
            let Some(new) = new else { return verdict };
            match self.0.compare_exchange_weak(now, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return verdict,
                Err(seen) => now = seen,
            }
        }
    }

    #[inline]
    pub(crate) fn snapshot(&self) -> Snapshot {
        // ORDER: Acquire pairs with the Release of the change that it shows.
        Snapshot(self.0.load(Ordering::Acquire))
    }

    /// The record gets a source. Both directions count as ready until an operation says otherwise.
    pub(crate) fn open(&self) -> u32 {
        let generation = self.snapshot().generation();
        let flags = flag(Direction::Read, READY) | flag(Direction::Write, READY);
        // ORDER: Release pairs with the Acquire of whatever looks next: the slot as its last source left it, emptied.
        self.0.store(u64::from(generation) << GENERATION_SHIFT | flags, Ordering::Release);
        generation
    }

    /// An event of the source with this generation.
    #[inline]
    pub(crate) fn event(&self, generation: u32, happened: Happened) -> Delivery {
        self.change(|now| {
            if now.generation() != generation || now.0 & GONE != 0 {
                return (None, Delivery::default());
            }
            let (mut next, mut delivery) = (now, 0);
            for direction in Direction::BOTH {
                let (ready, cut) = happened.in_direction(direction);
                if !ready {
                    continue;
                }
                next = next.with_next_tick(direction);
                let waits = next.0 & flag(direction, ARMED | LISTED);
                let busy = next.0 & flag(direction, BUSY);
                // A cell that somebody has stays as it is: its owner will see the tick.
                let fires = if busy == 0 { waits } else { waits & flag(direction, LISTED) };
                let takes = (fires & flag(direction, ARMED)) * (BUSY / ARMED);
                next.0 = next.0 & !fires | takes | flag(direction, READY | if cut { CUT } else { 0 });
                delivery |= fires;
            }
            (Some(next.0), Delivery(delivery))
        })
    }

    /// Somebody wants to wait: takes the cell, unless there is nothing to wait for.
    #[inline]
    pub(crate) fn claim(&self, direction: Direction, until: Until) -> Claim {
        self.change(|now| {
            if now.has(direction, until) {
                return (None, Claim::Over);
            }
            if now.0 & flag(direction, BUSY) != 0 {
                return (None, Claim::Contended);
            }
            let occupied = now.0 & flag(direction, ARMED) != 0;
            let next = now.0 & !flag(direction, ARMED) | flag(direction, BUSY);
            (Some(next), Claim::Taken { tick: now.tick(direction), occupied })
        })
    }

    /// The cell holds the waker that the next event is to wake; `tick` is from the claim.
    #[inline]
    pub(crate) fn settle(&self, direction: Direction, tick: u16) -> Settled {
        self.change(|now| {
            if now.tick(direction) != tick {
                return (None, Settled::Overtaken);
            }
            (Some(now.0 & !flag(direction, BUSY) | flag(direction, ARMED)), Settled::Armed)
        })
    }

    /// This thread is done with the cell.
    #[inline]
    pub(crate) fn release(&self, direction: Direction) -> Release {
        self.change(|now| {
            let next = now.0 & !flag(direction, BUSY);
            let last = next & GONE != 0 && next & ANY_BUSY == 0;
            (Some(next), if last { Release::Free } else { Release::Nothing })
        })
    }

    /// Somebody waits on the list; false if there is nothing to wait for.
    pub(crate) fn list(&self, direction: Direction, until: Until) -> bool {
        self.change(|now| {
            if now.has(direction, until) {
                return (None, false);
            }
            (Some(now.0 | flag(direction, LISTED)), true)
        })
    }

    /// An operation proved that the source is not ready, unless an event came since `tick`.
    #[inline]
    pub(crate) fn clear(&self, direction: Direction, tick: u16, proof: Proof) {
        self.change(|now| {
            let keeps = now.tick(direction) != tick
                || proof == Proof::ShortTransfer && now.0 & flag(direction, CUT) != 0;
            (if keeps { None } else { Some(now.0 & !flag(direction, READY | CUT)) }, ())
        });
    }

    /// The source is gone: its generation ends, and with it every event on its way.
    pub(crate) fn retire(&self) -> Release {
        self.change(|now| {
            let generation = ((u64::from(now.generation()) + 1) % GENERATIONS) << GENERATION_SHIFT;
            let busy = now.0 & ANY_BUSY;
            let next = generation | now.0 & !FLAGS & !(u64::MAX << GENERATION_SHIFT) | busy | GONE;
            (Some(next), if busy == 0 { Release::Free } else { Release::Nothing })
        })
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const IN: Happened = Happened { read: true, ..Happened::NOTHING };

    fn open() -> (Readiness, u32) {
        let word = Readiness::new();
        let generation = word.open();
        word.clear(Direction::Read, 0, Proof::WouldBlock);
        (word, generation)
    }

    #[test]
    fn s3_event_of_an_older_generation_does_nothing() {
        let (word, generation) = open();
        assert_eq!(word.retire(), Release::Free);
        assert_ne!(word.open(), generation);
        let before = word.snapshot();
        assert_eq!(word.event(generation, IN), Delivery::default());
        assert_eq!(word.snapshot(), before);
    }

    #[test]
    fn s7_clearing_loses_no_event_that_came_meanwhile() {
        let (word, generation) = open();
        let tick = word.snapshot().tick(Direction::Read);
        let _ = word.event(generation, IN);
        word.clear(Direction::Read, tick, Proof::WouldBlock);
        assert!(word.snapshot().has(Direction::Read, Until::Ready));
    }

    #[test]
    fn an_event_while_the_cell_is_taken_overtakes() {
        let (word, generation) = open();
        let Claim::Taken { tick, occupied } = word.claim(Direction::Read, Until::Ready) else { panic!() };
        assert!(!occupied);
        assert!(word.event(generation, IN).is_empty());
        assert_eq!(word.settle(Direction::Read, tick), Settled::Overtaken);
        assert_eq!(word.release(Direction::Read), Release::Nothing);
        assert_eq!(word.claim(Direction::Read, Until::Ready), Claim::Over);
    }

    #[test]
    fn the_thread_that_fires_frees_the_slot_of_a_source_that_went_away() {
        let (word, generation) = open();
        let Claim::Taken { tick, .. } = word.claim(Direction::Read, Until::Ready) else { panic!() };
        assert_eq!(word.settle(Direction::Read, tick), Settled::Armed);
        assert!(word.event(generation, IN).has_cell(Direction::Read));
        assert_eq!(word.retire(), Release::Nothing);
        assert_eq!(word.release(Direction::Read), Release::Free);
    }

    #[test]
    fn a_short_transfer_forgets_nothing_where_it_may_be_cut() {
        let (word, generation) = open();
        let _ = word.event(generation, Happened { read_cut: true, ..IN });
        let tick = word.snapshot().tick(Direction::Read);
        word.clear(Direction::Read, tick, Proof::ShortTransfer);
        assert!(word.snapshot().has(Direction::Read, Until::Ready));
        word.clear(Direction::Read, tick, Proof::WouldBlock);
        assert!(!word.snapshot().has(Direction::Read, Until::Ready));
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle)), target_pointer_width = "64"))]
mod spelled_out;

#[cfg(all(test, paceline_loom))]
mod models;
