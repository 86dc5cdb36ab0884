//! [`MarkWord`]: what events report of a source beside the directions in which it is ready. Few sources ever
//! have such a mark, so the marks are no part of the readiness word.

use crate::sync::{AtomicU32, Ordering};

/// A set of marks that an event may report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    pub(crate) const NONE: Self = Self(0);
    /// The peer sends no more.
    pub(crate) const READ_CLOSED: Self = Self(1);
    /// Nothing can be sent any more.
    pub(crate) const WRITE_CLOSED: Self = Self(2);
    /// There is an error to collect.
    pub(crate) const ERROR: Self = Self(4);
    /// There is urgent data.
    pub(crate) const PRIORITY: Self = Self(8);

    /// Marks that are permanent for most sources, but not for all: a FIFO gets another writer, a socket is
    /// connected after it was registered.
    pub(crate) const ENDS: Self = Self(Self::READ_CLOSED.0 | Self::WRITE_CLOSED.0);

    /// Marks that pass once they were seen.
    pub(crate) const PASSING: Self = Self(Self::ERROR.0 | Self::PRIORITY.0);

    const BITS: u32 = 8;

    /// Returns these marks if `said`, else none.
    #[cfg_attr(not(paceline_epoll), allow(dead_code, reason = "only epoll tells of them"))]
    pub(crate) fn if_said(self, said: bool) -> Self {
        if said { self } else { Self::default() }
    }

    #[cfg_attr(not(paceline_epoll), allow(dead_code, reason = "only epoll tells of them"))]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A copy of the marks of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted(u32);

impl Noted {
    pub(crate) fn has(self, mark: Marks) -> bool {
        self.0 & u32::from(mark.0) != 0
    }
}

/// The marks of one source; a count of reports, so that a mark that was reported again is not forgotten; and
/// the generation of the source, so that an event of the record's previous source marks nothing.
///
/// ```text
/// | generation | times noted | marks |
///              12            8
/// ```
#[derive(Debug)]
pub(crate) struct MarkWord(AtomicU32);

const TIMES: u32 = 0xf << Marks::BITS;
const MARKS_SHIFT: u32 = Marks::BITS + 4;

impl MarkWord {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Clears the marks for a new source of this generation.
    pub(super) fn open(&self, generation: u32) {
        // Relaxed suffices: publishing the source makes this visible.
        self.0.store(generation << MARKS_SHIFT, Ordering::Relaxed);
    }

    /// Adds the marks of an event of the source with this generation; an event of another generation changes
    /// nothing. A thread that sees the event in the readiness word, which changes next, sees the marks.
    pub(super) fn note(&self, generation: u32, marks: Marks) {
        let mut now = self.0.load(Ordering::Relaxed);
        while now >> MARKS_SHIFT == generation {
            let times = now.wrapping_add(1 << Marks::BITS) & TIMES;
            let next = now & !TIMES | times | u32::from(marks.0);
            // Relaxed suffices: the change of the readiness word that follows releases this.
            match self.0.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    pub(super) fn get(&self) -> Noted {
        Noted(self.0.load(Ordering::Relaxed))
    }

    /// Removes the passing marks, unless an event was noted since `seen`.
    pub(super) fn forget(&self, seen: Noted) {
        self.replace(seen, seen.0 & !u32::from(Marks::PASSING.0));
    }

    /// Removes the ends that do not hold any more: all but those in `left`. If an event was noted since
    /// `seen`, they stay. Returns `seen` without them in both cases.
    pub(super) fn keep_ends(&self, seen: Noted, left: Marks) -> Noted {
        let over = Marks::ENDS.0 & !left.0;
        self.replace(seen, seen.0 & !u32::from(over))
    }

    /// Sets the word to `next`, unless an event was noted since `seen`. Returns `next` in both cases.
    fn replace(&self, seen: Noted, next: u32) -> Noted {
        // Relaxed: as above. If the exchange fails, an event was noted.
        let _ = self.0.compare_exchange(seen.0, next, Ordering::Relaxed, Ordering::Relaxed);
        Noted(next)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_older_generation_marks_nothing() {
        let marked = MarkWord::new();
        marked.open(7);
        let is_marked =
            || [Marks::READ_CLOSED, Marks::ERROR, Marks::PRIORITY].map(|mark| marked.get().has(mark));
        marked.note(6, Marks::READ_CLOSED);
        assert_eq!(is_marked(), [false; 3]);
        marked.note(7, Marks::READ_CLOSED.and(Marks::ERROR));
        assert_eq!(is_marked(), [true, true, false]);
        marked.forget(marked.get());
        assert_eq!(is_marked(), [true, false, false], "an end does not pass");
        assert!(marked.keep_ends(marked.get(), Marks::READ_CLOSED).has(Marks::READ_CLOSED));
        assert!(!marked.keep_ends(marked.get(), Marks::WRITE_CLOSED).has(Marks::READ_CLOSED));
        assert_eq!(is_marked(), [false; 3]);
        marked.open(8);
        assert_eq!(is_marked(), [false; 3]);
    }

    /// Fails if the copies are compared by their marks only.
    #[test]
    fn what_was_noted_again_is_not_forgotten() {
        let marked = MarkWord::new();
        marked.open(1);
        marked.note(1, Marks::ERROR);
        let seen = marked.get();
        marked.note(1, Marks::ERROR);
        marked.forget(seen);
        assert!(marked.get().has(Marks::ERROR));
        let seen = marked.get();
        marked.note(1, Marks::READ_CLOSED);
        assert!(!marked.keep_ends(seen, Marks::NONE).has(Marks::READ_CLOSED));
        assert!(marked.get().has(Marks::READ_CLOSED));
    }
}
