//! What a socket is ready for, and the queue of the sockets whose readiness may have changed.

use std::collections::VecDeque;
use std::ops::BitOr;

use super::ids::SocketId;

/// What a socket is ready for, in the terms of epoll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketReadiness(u8);

impl SocketReadiness {
    /// `EPOLLIN`: a read or an accept does not block.
    pub(crate) const READABLE: Self = Self(1);
    /// `EPOLLOUT`: a write does not block.
    pub(crate) const WRITABLE: Self = Self(1 << 1);
    /// `EPOLLRDHUP`: no further bytes arrive.
    pub(crate) const READ_HANGUP: Self = Self(1 << 2);
    /// `EPOLLHUP`: both directions are closed, or there is no connection.
    pub(crate) const HANGUP: Self = Self(1 << 3);
    /// `EPOLLERR`: `take_error` has an error.
    pub(crate) const ERROR: Self = Self(1 << 4);
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);

    /// Returns whether all bits of `other` are set.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `self` if the condition holds, else nothing.
    pub(super) fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

impl BitOr for SocketReadiness {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The sockets with an event that the reactor has not fetched, in the order of their first event.
///
/// As with epoll, several events of a socket become one, and the readiness that is reported is that of the
/// time of the fetch.
#[derive(Debug, Default)]
pub(super) struct Edges(VecDeque<SocketId>);

impl Edges {
    pub(super) fn push(&mut self, id: SocketId) {
        self.0.push_back(id);
    }

    pub(super) fn pop(&mut self) -> Option<SocketId> {
        self.0.pop_front()
    }
}
