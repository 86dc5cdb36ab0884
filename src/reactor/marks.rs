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

    pub(crate) fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }
}

/// The marks of one source, with its generation, so that an event of the one that had the record before marks nothing.
#[derive(Debug, Default)]
pub(crate) struct Marked(AtomicU32);

impl Marked {
    /// The record gets a source.
    pub(super) fn open(&self, generation: u32) {
        // Relaxed: the source is published by whoever made it.
        self.0.store(generation << Marks::BITS, Ordering::Relaxed);
    }

    /// An event of the source with this generation. Whoever sees the event in the readiness word, which changes next, sees this.
    pub(super) fn note(&self, generation: u32, marks: Marks) {
        self.change(|now| (now >> Marks::BITS == generation).then_some(now | u32::from(marks.0)));
    }

    pub(super) fn get(&self) -> Marks {
        Marks(self.0.load(Ordering::Relaxed) as u8)
    }

    pub(super) fn forget(&self, marks: Marks) {
        self.change(|now| (now & u32::from(marks.0) != 0).then_some(now & !u32::from(marks.0)));
    }

    fn change(&self, f: impl Fn(u32) -> Option<u32>) {
        let mut now = self.0.load(Ordering::Relaxed);
        while let Some(next) = f(now) {
            // Relaxed: it is ordered by the readiness word, whose change releases it.
            match self.0.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn s3_an_event_of_an_older_generation_marks_nothing() {
        let marked = Marked::default();
        marked.open(7);
        marked.note(6, Marks::READ_CLOSED);
        assert!(marked.get().is_empty());
        marked.note(7, Marks::READ_CLOSED.and(Marks::ERROR));
        assert!(marked.get().has(Marks::READ_CLOSED) && !marked.get().has(Marks::PRIORITY));
        marked.forget(Marks::PASSING);
        assert_eq!(marked.get(), Marks::READ_CLOSED);
        marked.open(8);
        assert!(marked.get().is_empty());
    }
}
