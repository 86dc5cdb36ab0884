//! The readiness word: the readiness of one source, in one atomic.
//!
//! ```text
//!  63        47 46         31 30        15 14 11 10 9    5 4    0
//! | generation | write count | read count | marks |G | write | read |
//! ```
//!
//! Each direction has five flags:
//!
//! | flag | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `READY` | an operation is worth a try | [`event`]; `open`, for a new source | [`clear`] |
//! | `CUT` | a short transfer proves nothing, see below | [`event`] | [`clear`] after a `WouldBlock` |
//! | `ARMED` | the cell holds the waker of a waiting task | [`settle`] | [`event`], [`claim`], `retire` |
//! | `BUSY` | one thread has the cell to itself | [`claim`], [`event`] | [`settle`], [`release`] |
//! | `LISTED` | a task may wait on the list beside the cell | [`list`] | [`event`], `retire` |
//!
//! [`event`]: ReadinessWord::event
//! [`clear`]: ReadinessWord::clear
//! [`settle`]: ReadinessWord::settle
//! [`claim`]: ReadinessWord::claim
//! [`release`]: ReadinessWord::release
//! [`list`]: ReadinessWord::list
//!
//! `CUT` says that something else than an empty (or full) buffer may cut a transfer short: an end, which no
//! edge follows, or an urgent mark with more data behind it.
//!
//! The count of the events of a direction makes clearing safe: a thread that saw `WouldBlock` clears
//! readiness only if no event came since it read the word. The count wraps after 65 536 events of one
//! direction between two adjacent steps of one thread.
//!
//! The generation is part of each key; an event whose key has another one belongs to a source that is gone,
//! and does nothing. `G` (gone) says that the source was retired while a thread had a cell; that thread frees
//! the record.
//!
//! The marks are what events report beside readiness: ends, errors, urgent data. An event that reports one is
//! an event of the reading direction, too: so a mark that was reported again since a thread read the word is
//! not removed, for the same reason.
//!
//! Why no event is lost (LF6): an event finds `ARMED` and wakes the waker; or it finds `BUSY` and advances
//! the count, which the owner of the cell compares in `settle` (then the result is false);
//! or it finds neither and leaves `READY` and the count behind, which `claim` reads before it takes the cell.
//! All three are compare-and-swaps on one word, so there is no fourth case.

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
const MARKS_SHIFT: u32 = 11;
const FLAGS: u64 = (1 << 15) - 1;
const COUNT_SHIFT: [u32; 2] = [15, 31];
const GENERATION_SHIFT: u32 = 47;

/// Number of generation bits that a key carries. A key must fit into a `usize` beside the record's index.
pub(crate) const GENERATION_BITS: u32 = if usize::BITS == 64 { 64 - GENERATION_SHIFT } else { 10 };
const GENERATIONS: u64 = 1 << GENERATION_BITS;

/// The `BUSY` flags of both directions.
const ANY_BUSY: u64 = flag(Direction::Read, BUSY) | flag(Direction::Write, BUSY);

const fn flag(direction: Direction, flag: u64) -> u64 {
    flag << (direction as u32 * DIRECTION_BITS)
}

/// The operating system's report of a source: the directions in which it is ready, those in which a short
/// transfer proves nothing, and its marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) ready: [bool; 2],
    pub(crate) cut: [bool; 2],
    pub(crate) marks: Marks,
}

impl Happened {
    /// The state before an operation has proved otherwise.
    pub(crate) const EVERYTHING: Self = Self { ready: [true; 2], ..Self::NOTHING };
    pub(crate) const NOTHING: Self = Self { ready: [false; 2], cut: [false; 2], marks: Marks::NONE };
}

/// The condition that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// An operation is worth a try.
    Ready,
    /// An event has come since this count. The wait makes a ready source report again.
    After(u16),
    /// An event has come since this count by itself, on ways that report events unasked.
    Told(u16),
}

/// The state of a source at one moment, as far as it is known: a copy of the word.
///
/// Epoll reports that a source has ended or failed. On the portable path only an operation finds that out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness(u64);

impl Readiness {
    /// Returns whether an operation is worth a try.
    pub fn is_ready(self, direction: Direction) -> bool {
        self.has(direction, Until::Ready)
    }

    /// Returns whether the direction has ended: nothing more can be read, or written.
    pub fn is_closed(self, direction: Direction) -> bool {
        self.is_marked([Marks::READ_CLOSED, Marks::WRITE_CLOSED][direction as usize])
    }

    /// Returns whether there is an error to collect.
    pub fn is_error(self) -> bool {
        self.is_marked(Marks::ERROR)
    }

    /// Returns whether there is urgent data.
    pub fn is_priority(self) -> bool {
        self.is_marked(Marks::PRIORITY)
    }

    pub(crate) fn is_marked(self, marks: Marks) -> bool {
        self.0 & marks.in_word() != 0
    }

    /// Returns whether the condition of a wait holds: the direction is ready, or its count has changed.
    pub(crate) fn has(self, direction: Direction, until: Until) -> bool {
        match until {
            Until::Ready => self.0 & flag(direction, READY) != 0,
            Until::After(count) | Until::Told(count) => self.count(direction) != count,
        }
    }

    pub(crate) fn count(self, direction: Direction) -> u16 {
        (self.0 >> COUNT_SHIFT[direction as usize]) as u16
    }

    /// Returns whether a task waits in the cell or on the list, or has waited there and given up.
    pub(crate) fn is_armed(self, direction: Direction) -> bool {
        self.0 & flag(direction, ARMED | LISTED) != 0
    }

    pub(crate) fn is_open(self) -> bool {
        self.0 & GONE == 0
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    fn without(self, marks: Marks) -> Self {
        Self(self.0 & !marks.in_word())
    }

    /// Returns the word with the count of this direction advanced by one; the count wraps.
    fn with_next_count(self, direction: Direction) -> Self {
        let shift = COUNT_SHIFT[direction as usize];
        let count = u64::from(self.count(direction).wrapping_add(1));
        Self(self.0 & !(0xffff << shift) | count << shift)
    }
}

impl Marks {
    const fn in_word(self) -> u64 {
        (self.0 as u64) << MARKS_SHIFT
    }
}

/// The waiters of an event: the `ARMED` bit of a direction whose cell this thread now has, with a waker in it
/// (wake it, then [`ReadinessWord::release`]), and the `LISTED` bit of a direction whose list is to be woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Delivery(u64);

impl Delivery {
    #[inline]
    pub(crate) fn has_cell(self, direction: Direction) -> bool {
        self.0 & flag(direction, ARMED) != 0
    }

    #[inline]
    pub(crate) fn has_list(self, direction: Direction) -> bool {
        self.0 & flag(direction, LISTED) != 0
    }
}

/// The result of an attempt to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Wait {
    /// The wait is over already.
    Over,
    /// The waker will be called.
    Waiting,
    /// The waker will be called, or was, but the I/O may be possible already. Either this thread has waited
    /// here before in the same turn, and no event came since, as a caller does that polls twice without going
    /// to sleep; or this thread does not look for events at all; or another thread had the cell, because an
    /// event is being delivered. So a caller that polls without a wait in between finds the data with its
    /// second poll after an event.
    Unsure,
}

/// The reason why readiness may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The operation returned `WouldBlock`.
    WouldBlock,
    /// The operation moved less than it was asked to.
    ShortTransfer,
}

/// The readiness word of one source.
#[derive(Debug)]
pub(crate) struct ReadinessWord(AtomicU64);

impl ReadinessWord {
    /// Makes the word of a record that no source uses yet.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(GONE))
    }

    /// Replaces the word by the one that `f` returns for it; if another thread changes the word meanwhile,
    /// calls `f` again. `None` leaves the word as it is. Returns the verdict of the last call.
    // ORDER: `Acquire` on each successful change pairs with the `Release` of the change before it, so that
    // the owner of a cell sees what its previous owner wrote there.
    #[inline]
    fn change<R>(&self, mut f: impl FnMut(Readiness) -> (Option<u64>, R)) -> R {
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            let (new, verdict) = f(Readiness(now));
            let Some(new) = new else { return verdict };
            match self.0.compare_exchange_weak(now, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return verdict,
                Err(seen) => now = seen,
            }
        }
    }

    #[inline]
    pub(crate) fn snapshot(&self) -> Readiness {
        // ORDER: Acquire pairs with the Release of the change that wrote this value.
        Readiness(self.0.load(Ordering::Acquire))
    }

    /// Opens the record for a new source, and returns its generation. Both directions count as ready until an
    /// operation proves otherwise.
    pub(crate) fn open(&self) -> u32 {
        let generation = self.snapshot().generation();
        let flags = flag(Direction::Read, READY) | flag(Direction::Write, READY);
        // ORDER: Release pairs with the Acquire of the next read of the word: the record as its last source
        // left it, emptied.
        self.0.store(u64::from(generation) << GENERATION_SHIFT | flags, Ordering::Release);
        generation
    }

    /// Records an event of the source with this generation, and returns its waiters. The caller has to wake
    /// them, and gets each cell among them until it [releases](Self::release) that cell. The waiter in a cell
    /// that another thread has is not among them: that thread sees the count. Does nothing if that source is
    /// gone.
    #[inline]
    pub(crate) fn event(&self, generation: u32, happened: Happened) -> Delivery {
        self.change(|now| {
            if now.generation() != generation || now.0 & GONE != 0 {
                return (None, Delivery::default());
            }
            let (mut next, mut delivery) = (Readiness(now.0 | happened.marks.in_word()), 0);
            for direction in Direction::BOTH {
                if !happened.ready[direction as usize] {
                    continue;
                }
                let cut = happened.cut[direction as usize];
                next = next.with_next_count(direction);
                let waits = next.0 & flag(direction, ARMED | LISTED);
                let busy = next.0 & flag(direction, BUSY);
                // A taken cell stays as it is: its owner will see the count.
                let fires = if busy == 0 { waits } else { waits & flag(direction, LISTED) };
                let takes = (fires & flag(direction, ARMED)) * (BUSY / ARMED);
                next.0 = next.0 & !fires | takes | flag(direction, READY | if cut { CUT } else { 0 });
                delivery |= fires;
            }
            (Some(next.0), Delivery(delivery))
        })
    }

    /// Takes the cell for a wait: it belongs to this thread until it settles. Returns the count of the
    /// direction. If the wait is over already, or if another thread has the cell, leaves the cell and returns
    /// [`Wait::Over`] or [`Wait::Unsure`].
    #[inline]
    pub(crate) fn claim(&self, direction: Direction, until: Until) -> Result<u16, Wait> {
        self.change(|now| {
            if now.has(direction, until) {
                return (None, Err(Wait::Over));
            }
            if now.0 & flag(direction, BUSY) != 0 {
                return (None, Err(Wait::Unsure));
            }
            let next = now.0 & !flag(direction, ARMED) | flag(direction, BUSY);
            (Some(next), Ok(now.count(direction)))
        })
    }

    /// Arms the cell, which now holds the waker that the next event has to wake, and gives it back. If an
    /// event has come since the claim, which returned `count`, returns false: the cell stays with this
    /// thread, which has to wake its waker and to release it.
    #[inline]
    #[must_use]
    pub(crate) fn settle(&self, direction: Direction, count: u16) -> bool {
        self.change(|now| {
            if now.count(direction) != count {
                return (None, false);
            }
            (Some(now.0 & !flag(direction, BUSY) | flag(direction, ARMED)), true)
        })
    }

    /// Gives the cell back. Returns whether the caller has to free the record: the source is gone, and no
    /// other thread has a cell.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self, direction: Direction) -> bool {
        self.change(|now| {
            let next = now.0 & !flag(direction, BUSY);
            (Some(next), next & GONE != 0 && next & ANY_BUSY == 0)
        })
    }

    /// Announces a waiter on the list. Returns false, and announces none, if the wait is over already.
    pub(crate) fn list(&self, direction: Direction, until: Until) -> bool {
        self.change(|now| {
            if now.has(direction, until) {
                return (None, false);
            }
            (Some(now.0 | flag(direction, LISTED)), true)
        })
    }

    /// Clears readiness, because an operation proved that the source is not ready. Does nothing if an event
    /// has come since `count`, or if the proof is a short transfer and `CUT` is set.
    #[inline]
    pub(crate) fn clear(&self, direction: Direction, count: u16, proof: Proof) {
        self.change(|now| {
            let keeps = now.count(direction) != count
                || proof == Proof::ShortTransfer && now.0 & flag(direction, CUT) != 0;
            (if keeps { None } else { Some(now.0 & !flag(direction, READY | CUT)) }, ())
        });
    }

    /// Removes marks, unless an event that may have reported them again has come since `seen`. Returns `seen`
    /// without them in both cases.
    pub(crate) fn unmark(&self, seen: Readiness, over: Marks) -> Readiness {
        self.change(|now| {
            let keeps = now.count(Direction::Read) != seen.count(Direction::Read);
            (if keeps { None } else { Some(now.without(over).0) }, ())
        });
        seen.without(over)
    }

    /// Retires the source: its generation ends, and with it every event on its way. Returns whether the
    /// caller has to free the record: no thread has a cell of it. Otherwise the thread that releases the last
    /// cell has to.
    #[must_use]
    pub(crate) fn retire(&self) -> bool {
        self.change(|now| {
            let generation = ((u64::from(now.generation()) + 1) % GENERATIONS) << GENERATION_SHIFT;
            let busy = now.0 & ANY_BUSY;
            let next = generation | now.0 & !FLAGS & !(u64::MAX << GENERATION_SHIFT) | busy | GONE;
            (Some(next), busy == 0)
        })
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const IN: Happened = Happened { ready: [true, false], ..Happened::NOTHING };

    fn open() -> (ReadinessWord, u32) {
        let word = ReadinessWord::new();
        let generation = word.open();
        word.clear(Direction::Read, 0, Proof::WouldBlock);
        (word, generation)
    }

    #[test]
    fn event_of_an_older_generation_does_nothing() {
        let (word, generation) = open();
        assert!(word.retire());
        assert_ne!(word.open(), generation);
        let before = word.snapshot();
        assert_eq!(word.event(generation, IN), Delivery::default());
        assert_eq!(word.snapshot(), before);
    }

    #[test]
    fn clearing_loses_no_event_that_came_meanwhile() {
        let (word, generation) = open();
        let count = word.snapshot().count(Direction::Read);
        let _ = word.event(generation, IN);
        word.clear(Direction::Read, count, Proof::WouldBlock);
        assert!(word.snapshot().has(Direction::Read, Until::Ready));
    }

    #[test]
    fn an_event_while_the_cell_is_taken_overtakes() {
        let (word, generation) = open();
        let count = word.claim(Direction::Read, Until::Ready).unwrap();
        assert_eq!(word.event(generation, IN), Delivery::default());
        assert!(!word.settle(Direction::Read, count));
        assert!(!word.release(Direction::Read));
        assert_eq!(word.claim(Direction::Read, Until::Ready), Err(Wait::Over));
    }

    #[test]
    fn the_thread_that_fires_frees_the_slot_of_a_source_that_went_away() {
        let (word, generation) = open();
        let count = word.claim(Direction::Read, Until::Ready).unwrap();
        assert!(word.settle(Direction::Read, count));
        assert!(word.event(generation, IN).has_cell(Direction::Read));
        assert!(!word.retire());
        assert!(word.release(Direction::Read));
    }

    #[test]
    fn an_event_of_an_older_generation_marks_nothing_and_the_next_source_has_no_marks() {
        let (word, generation) = open();
        let reports = |marks| Happened { marks, ..IN };
        let is_marked = || {
            let now = word.snapshot();
            [now.is_closed(Direction::Read), now.is_error(), now.is_priority()]
        };
        let _ = word.event(generation + 1, reports(Marks::READ_CLOSED));
        assert_eq!(is_marked(), [false; 3]);
        let _ = word.event(generation, reports(Marks::READ_CLOSED.and(Marks::ERROR)));
        assert_eq!(is_marked(), [true, true, false]);
        assert!(!word.unmark(word.snapshot(), Marks::PASSING).is_error());
        assert_eq!(is_marked(), [true, false, false], "an end does not pass");
        assert!(!word.snapshot().is_closed(Direction::Write));
        let _ = word.retire();
        word.open();
        assert_eq!(is_marked(), [false; 3]);
    }

    /// Fails if the copies are compared by their marks only.
    #[test]
    fn what_was_reported_again_is_not_forgotten() {
        let (word, generation) = open();
        let error = Happened { marks: Marks::ERROR, ..IN };
        let _ = word.event(generation, error);
        let seen = word.snapshot();
        let _ = word.event(generation, error);
        assert!(!word.unmark(seen, Marks::PASSING).is_error());
        assert!(word.snapshot().is_error());
        word.unmark(word.snapshot(), Marks::PASSING);
        assert!(!word.snapshot().is_error());
    }

    #[test]
    fn a_short_transfer_forgets_nothing_where_it_may_be_cut() {
        let (word, generation) = open();
        let _ = word.event(generation, Happened { cut: [true, false], ..IN });
        let count = word.snapshot().count(Direction::Read);
        word.clear(Direction::Read, count, Proof::ShortTransfer);
        assert!(word.snapshot().has(Direction::Read, Until::Ready));
        word.clear(Direction::Read, count, Proof::WouldBlock);
        assert!(!word.snapshot().has(Direction::Read, Until::Ready));
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle)), target_pointer_width = "64"))]
mod spelled_out;

#[cfg(all(test, paceline_loom))]
mod models;
