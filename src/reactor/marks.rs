//! [`Marked`]: what events said of a source beside in which directions it is ready. Few sources ever hear of it, so it is no part of
//! the readiness word.

use crate::sync::{AtomicU32, Ordering};

/// What an event may say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    pub(crate) const NONE: Self = Self(0);
    /// The peer sends no more, or nobody listens to it any more.
    pub(crate) const READ_CLOSED: Self = Self(1);
    /// Nothing can be sent any more.
    pub(crate) const WRITE_CLOSED: Self = Self(2);
    /// There is an error to be collected.
    pub(crate) const ERROR: Self = Self(4);
    /// There is something urgent.
    pub(crate) const PRIORITY: Self = Self(8);

    /// What passes once it was seen; an end is for good.
    pub(crate) const PASSING: Self = Self(Self::ERROR.0 | Self::PRIORITY.0);

    const BITS: u32 = 8;

    /// These, if they were said.
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

/// What is known of one source's marks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted(u32);

impl Noted {
    pub(crate) fn has(self, mark: Marks) -> bool {
        self.0 & u32::from(mark.0) != 0
    }
}

/// The marks of one source; how often something was noted, so that what was noted again is not forgotten; and its generation, so that an
/// event of the one that had the record before marks nothing.
///
/// ```text
/// | generation | times noted | marks |
///              12            8
/// ```
#[derive(Debug)]
pub(crate) struct Marked(AtomicU32);

const TIMES: u32 = 0xf << Marks::BITS;
const GENERATION_SHIFT: u32 = Marks::BITS + 4;

impl Marked {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The record gets a source.
    pub(super) fn open(&self, generation: u32) {
        // Relaxed: the source is published by whoever made it.
        self.0.store(generation << GENERATION_SHIFT, Ordering::Relaxed);
    }

    /// An event of the source with this generation. Whoever sees the event in the readiness word, which changes next, sees this.
    pub(super) fn note(&self, generation: u32, marks: Marks) {
        let mut now = self.0.load(Ordering::Relaxed);
        while now >> GENERATION_SHIFT == generation {
            let times = now.wrapping_add(1 << Marks::BITS) & TIMES;
            let next = now & !TIMES | times | u32::from(marks.0);
            // Relaxed: it is ordered by the readiness word, whose change releases it.
            match self.0.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    pub(super) fn get(&self) -> Noted {
        Noted(self.0.load(Ordering::Relaxed))
    }

    /// What passes is forgotten, if nothing was noted since it was seen.
    pub(super) fn forget(&self, seen: Noted) {
        let next = seen.0 & !u32::from(Marks::PASSING.0);
        // Relaxed: as above. If it fails, something was noted.
        let _ = self.0.compare_exchange(seen.0, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn s3_an_event_of_an_older_generation_marks_nothing() {
        let marked = Marked::new();
        marked.open(7);
        let is_marked =
            || [Marks::READ_CLOSED, Marks::ERROR, Marks::PRIORITY].map(|mark| marked.get().has(mark));
        marked.note(6, Marks::READ_CLOSED);
        assert_eq!(is_marked(), [false; 3]);
        marked.note(7, Marks::READ_CLOSED.and(Marks::ERROR));
        assert_eq!(is_marked(), [true, true, false]);
        marked.forget(marked.get());
        assert_eq!(is_marked(), [true, false, false], "an end is for good");
        marked.open(8);
        assert_eq!(is_marked(), [false; 3]);
    }

    /// (Fails if what is seen is only compared by its marks.)
    #[test]
    fn what_was_noted_again_is_not_forgotten() {
        let marked = Marked::new();
        marked.open(1);
        marked.note(1, Marks::ERROR);
        let seen = marked.get();
        marked.note(1, Marks::ERROR);
        marked.forget(seen);
        assert!(marked.get().has(Marks::ERROR));
    }
}
