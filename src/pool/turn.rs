//! [`Pool::take_turn`]: leads once, without waiting.

use std::sync::Arc;

use super::Pool;
use crate::flight::Pause;
use crate::leadership::Seat;
use crate::line::Rank;
use crate::sync;
use crate::waking;

impl Pool {
    /// Leads once: takes the events that an earlier leader has left or, if there are none, those that the
    /// poller has, without waiting for more, and fires them. Called at the end of the pool. Returns how many
    /// events that were, or `None` if another thread leads. A flight recorder does not see this turn: the
    /// thread may be in another runtime.
    pub(crate) fn take_turn(self: &Arc<Self>) -> Option<usize> {
        let unnoted = Pause::begin();
        let seat = sync::Arc::new(Seat::new(Rank::Relief));
        let follower = self.leadership.join(seat);
        let Ok(mut leader) = follower.insist() else { return None };
        let mut events = Vec::new();
        let share = self.reactor.shares.join();
        leader.with(|batch| {
            // Events that an earlier leader fetched and did not take come first.
            if batch.left() == 0 {
                batch.ask_poller(&self.reactor);
            }
            let mut next =
                || share.take().or_else(|| share.steal()).or_else(|| batch.next(&self.reactor, &share));
            events.extend(std::iter::from_fn(&mut next));
        });
        let (follower, count) = (leader.vacate(), events.len());
        for event in events {
            self.visit(|| waking::discard(self.reactor.fire(event)));
        }
        drop(follower);
        unnoted.end();
        Some(count)
    }
}
