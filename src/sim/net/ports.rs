//! The ports of a host that are in use, for one protocol.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::ids::SocketId;

/// The sockets by port. Several sockets have the same port if their addresses differ, or by `SO_REUSEADDR`,
/// or because a listener made them.
#[derive(Debug, Default)]
pub(super) struct Ports {
    users: BTreeSet<(u16, SocketId)>,
    /// The ephemeral port that was given out last, so that a port is reused as late as possible.
    last: Option<u16>,
}

impl Ports {
    pub(super) fn insert(&mut self, port: u16, id: SocketId) {
        self.users.insert((port, id));
    }

    pub(super) fn remove(&mut self, port: u16, id: SocketId) {
        self.users.remove(&(port, id));
    }

    pub(super) fn users(&self, port: u16) -> impl Iterator<Item = SocketId> {
        self.users.range((port, SocketId::MIN)..=(port, SocketId::MAX)).map(|&(_, id)| id)
    }

    pub(super) fn len(&self) -> usize {
        self.users.len()
    }

    /// Returns the ports of the range in the order in which they are to be tried.
    pub(super) fn candidates(&self, range: &RangeInclusive<u16>) -> impl Iterator<Item = u16> + use<> {
        let (start, end) = (*range.start(), *range.end());
        let first = match self.last {
            Some(last) if (start..end).contains(&last) => last + 1,
            _ => start,
        };
        (first..=end).chain(start..first)
    }

    pub(super) fn set_last(&mut self, port: u16) {
        self.last = Some(port);
    }
}
