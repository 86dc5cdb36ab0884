//! The list of followers that wait to be chosen.

use std::collections::VecDeque;

use super::{Rank, Seat};
use crate::sync::Arc;

/// Which parked follower is woken first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that parked last: its caches are warm, and threads that are not needed stay asleep.
    #[default]
    LastInFirstOut,
    /// The one that has waited longest: work spreads over all threads.
    FirstInFirstOut,
}

/// Who may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    HostsOnly,
    Anyone,
}

/// Parked followers, hosts and guests apart, each in the order in which they parked.
#[derive(Debug)]
pub(super) struct Parked {
    order: Order,
    hosts: VecDeque<Arc<Seat>>,
    guests: VecDeque<Arc<Seat>>,
}

impl Parked {
    pub(super) fn new(order: Order) -> Self {
        Self { order, hosts: VecDeque::new(), guests: VecDeque::new() }
    }

    pub(super) fn push(&mut self, seat: Arc<Seat>, rank: Rank) {
        match rank {
            Rank::Host => self.hosts.push_back(seat),
            Rank::Guest => self.guests.push_back(seat),
        }
    }

    /// The next one to wake; a guest only where no host is parked.
    pub(super) fn pop(&mut self, reach: Reach) -> Option<Arc<Seat>> {
        let order = self.order;
        let take = |list: &mut VecDeque<Arc<Seat>>| match order {
            Order::LastInFirstOut => list.pop_back(),
            Order::FirstInFirstOut => list.pop_front(),
        };
        match take(&mut self.hosts) {
            None if reach == Reach::Anyone => take(&mut self.guests),
            found => found,
        }
    }

    /// Takes `seat` off the list; false if it was not on it.
    pub(super) fn remove(&mut self, seat: &Arc<Seat>) -> bool {
        for list in [&mut self.hosts, &mut self.guests] {
            // From the back: who leaves on its own account parked lately more often than not.
            if let Some(at) = list.iter().rposition(|other| Arc::ptr_eq(other, seat)) {
                list.remove(at);
                return true;
            }
        }
        false
    }

    pub(super) fn has_host(&self) -> bool {
        !self.hosts.is_empty()
    }
}
