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

/// Parked followers, each rank apart, each in the order in which they parked.
#[derive(Debug)]
pub(super) struct Parked {
    order: Order,
    /// The greatest rank first.
    lists: [(Rank, VecDeque<Arc<Seat>>); 3],
}

impl Parked {
    pub(super) fn new(order: Order) -> Self {
        Self { order, lists: [Rank::Host, Rank::Guest, Rank::Relief].map(|rank| (rank, VecDeque::new())) }
    }

    pub(super) fn push(&mut self, seat: Arc<Seat>, rank: Rank) {
        let list = self.lists.iter_mut().find(|(other, _)| *other == rank);
        list.expect("there is a list for each rank").1.push_back(seat);
    }

    /// The next one to wake, of the greatest rank that is parked, if that is at least `reach`.
    pub(super) fn pop(&mut self, reach: Rank) -> Option<Arc<Seat>> {
        let order = self.order;
        let reachable = self.lists.iter_mut().filter(|(rank, _)| *rank >= reach);
        reachable.map(|(_, list)| list).find_map(|list| match order {
            Order::LastInFirstOut => list.pop_back(),
            Order::FirstInFirstOut => list.pop_front(),
        })
    }

    /// Takes `seat` off the list; false if it was not on it.
    pub(super) fn remove(&mut self, seat: &Arc<Seat>) -> bool {
        for (_, list) in &mut self.lists {
            // From the back: who leaves on its own account parked lately more often than not.
            if let Some(at) = list.iter().rposition(|other| Arc::ptr_eq(other, seat)) {
                list.remove(at);
                return true;
            }
        }
        false
    }

    /// Whether anybody is here of a greater rank than `rank`.
    pub(super) fn has_better(&self, rank: Rank) -> bool {
        self.lists.iter().any(|(other, list)| *other > rank && !list.is_empty())
    }
}
