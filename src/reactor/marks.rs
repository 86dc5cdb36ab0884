//! [`Marks`]: what events report of a source beside the directions in which it is ready.

/// A set of marks that an event may report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(pub(super) u8);

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

    /// Returns these marks if `said`, else none.
    #[cfg_attr(not(paceline_epoll), allow(dead_code, reason = "only epoll tells of them"))]
    pub(crate) fn if_said(self, said: bool) -> Self {
        if said { self } else { Self::NONE }
    }

    #[cfg_attr(not(paceline_epoll), allow(dead_code, reason = "only epoll tells of them"))]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these marks but for the others.
    pub(crate) const fn but(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}
