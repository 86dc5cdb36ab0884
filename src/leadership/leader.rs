//! [`Leader`]: the role that may use the guarded value, and the ways to give it up.

use super::{Follower, OPEN_TO_ALL, Rank, VACANT};
use crate::flight::{self, Reason, RoleNow};
use crate::sync::Ordering;

/// The role of the one thread that may use the guarded value (LF1).
#[derive(Debug)]
pub(crate) struct Leader<'a, T> {
    pub(super) follower: Follower<'a, T>,
}

impl<'a, T> Leader<'a, T> {
    /// Calls `f` with the guarded value.
    #[inline]
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the state word is `LED` by this thread, and only this role can end that.
        unsafe { self.follower.leadership.guarded.with_mut(f) }
    }

    /// Returns a check whether a follower of greater rank waits for this leader's place. Always false for a
    /// host.
    pub(crate) fn displaced(&self) -> impl Fn() -> bool + use<'a, T> {
        let (leadership, rank) = (self.follower.leadership, self.follower.seat.rank());
        move || rank != Rank::Host && leadership.line.has_better(rank)
    }

    /// Returns whether a promotion would wake a parked follower: a follower with at least the rank of this
    /// leader is parked, and no called follower is on its way. A follower of lower rank may not lead beside
    /// this thread, which stays in the set, unless leadership is open to all: that one is left to the deputy.
    #[inline]
    pub(crate) fn has_follower(&self) -> bool {
        self.follower.leadership.line.has_sleeper(self.follower.seat.rank())
    }

    /// Returns whether to wake a follower, which is as for [`has_follower`](Self::has_follower), to share
    /// this many events; [`Line::is_wake_worth`](crate::line::Line::is_wake_worth) has the rule.
    #[inline]
    pub(crate) fn is_wake_worth(&self, left: usize) -> bool {
        self.follower.leadership.line.is_wake_worth(self.follower.seat.rank(), || left)
    }

    /// Leaves leadership vacant and wakes no thread (LF2): the promotion that costs no wake. The next thread
    /// that asks takes it. A guest or relief that led before passes leadership on when it
    /// [waits](Follower::follow).
    #[inline]
    pub(crate) fn vacate(self) -> Follower<'a, T> {
        self.follower.leadership.free.add(1);
        self.step_down()
    }

    /// Leaves leadership vacant and wakes a parked follower that may take it, if there is one and no other is
    /// on its way: the paid promotion.
    pub(crate) fn promote(self) -> Follower<'a, T> {
        let leadership = self.follower.leadership;
        leadership.paid.add(1);
        let follower = self.step_down();
        leadership.pass_on(Reason::Work);
        follower
    }

    /// Makes leadership vacant and turns the leader into a follower. Unless the thread is a host, it owes a
    /// pass to a thread with a better claim.
    #[inline]
    fn step_down(self) -> Follower<'a, T> {
        let this = std::mem::ManuallyDrop::new(self);
        this.release();
        // SAFETY: `this` is never used again, so the follower is moved out once.
        let follower = unsafe { std::ptr::read(&this.follower) };
        follower.set_claims(false, !follower.seat.is_host());
        follower
    }

    /// Makes leadership vacant. Leadership that was open to any rank stays so, unless a follower of greater
    /// rank waits.
    #[inline]
    fn release(&self) {
        flight::role(RoleNow::Processes);
        let Follower { leadership, seat, .. } = &self.follower;
        let open = leadership.state.load(Ordering::Relaxed) & OPEN_TO_ALL;
        // Open leadership ends as soon as a follower with a better claim waits.
        let open = if open != 0 && leadership.line.has_better(seat.rank()) { VACANT } else { open };
        // ORDER: Release pairs with the Acquire of `Leadership::try_take`: the next leader sees the guarded
        // value as this one leaves it.
        leadership.state.store(VACANT | open, Ordering::Release);
    }
}

impl<T> Drop for Leader<'_, T> {
    /// Leaves leadership vacant. The follower inside is dropped next and passes leadership on.
    fn drop(&mut self) {
        self.release();
    }
}
