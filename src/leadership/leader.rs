//! [`Leader`]: the role that may use the guarded value, and the ways to give it up.

use super::{Follower, LED, OPEN, POLLING, Rank, VACANT};
use crate::gain::Trial;
use crate::sync::Ordering;

/// The one thread that may use the guarded value (LF1).
#[derive(Debug)]
pub(crate) struct Leader<'a, T> {
    pub(super) follower: Follower<'a, T>,
}

impl<'a, T> Leader<'a, T> {
    /// Uses the guarded value.
    #[inline]
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the state word is LED or POLLING by this thread, and only this role can end that.
        unsafe { self.follower.leadership.guarded.with_mut(f) }
    }

    /// Says that what follows may take long: other threads park at once instead of looking again.
    #[inline]
    pub(crate) fn settle_in(&mut self) {
        self.rewrite(LED, POLLING);
    }

    /// Says that the long part is over.
    #[inline]
    pub(crate) fn look_up(&mut self) {
        self.rewrite(POLLING, LED);
    }

    fn rewrite(&mut self, from: u8, to: u8) {
        // A plain store: nobody else writes the state while somebody leads.
        let state = self.follower.leadership.state.load(Ordering::Relaxed);
        self.follower.leadership.state.store(state & !from | to, Ordering::Relaxed);
    }

    /// Asks whether somebody of greater rank waits in this leader's place.
    pub(crate) fn displaced(&self) -> impl Fn() -> bool + use<'a, T> {
        let (leadership, rank) = (self.follower.leadership, self.follower.seat.rank());
        move || rank != Rank::Host && leadership.line.has_better(rank)
    }

    /// Whether a follower is parked that a promotion would wake, and none is on its way already.
    #[inline]
    pub(crate) fn has_follower(&self) -> bool {
        let line = &self.follower.leadership.line;
        !line.is_empty() && !line.somebody_comes()
    }

    /// The same, and promotions paid that woke somebody lately; or it is time for another try.
    #[inline]
    pub(crate) fn is_gain_likely(&self) -> bool {
        self.has_follower() && self.follower.leadership.gain.is_likely()
    }

    /// Whether it was woken to share the work; asked once.
    pub(crate) fn answers(&mut self) -> Option<Trial> {
        let granted = std::mem::take(&mut self.follower.granted);
        granted.then(|| self.follower.leadership.gain.answers()).flatten()
    }

    /// Whether somebody else of the set is awake, and works.
    pub(crate) fn has_company(&self) -> bool {
        let leadership = self.follower.leadership;
        let members: usize = leadership.members.iter().map(|rank| rank.get()).sum();
        members > leadership.line.len() + 1
    }

    /// The free promotion: leadership is vacant, whoever is awake takes it (LF2).
    #[inline]
    pub(crate) fn vacate(self) -> Follower<'a, T> {
        self.follower.leadership.free.add(1);
        self.step_down()
    }

    /// The paid promotion: one parked follower is woken to take it; and is on trial, if that is asked for.
    pub(crate) fn promote(self, on_trial: bool) -> Follower<'a, T> {
        let leadership = self.follower.leadership;
        leadership.paid.add(1);
        if on_trial {
            leadership.gain.calls();
        }
        let follower = self.step_down();
        if !leadership.pass_on() && on_trial {
            leadership.gain.called_nobody();
        }
        follower
    }

    #[inline]
    fn step_down(self) -> Follower<'a, T> {
        let this = std::mem::ManuallyDrop::new(self);
        this.release();
        // SAFETY: `this` is never used again, so the follower is moved out once.
        let mut follower = unsafe { std::ptr::read(&this.follower) };
        (follower.granted, follower.owes) = (false, !follower.seat.is_host());
        follower
    }

    #[inline]
    fn release(&self) {
        let Follower { leadership, seat, .. } = &self.follower;
        let open = leadership.state.load(Ordering::Relaxed) & OPEN;
        // What was open ends as soon as somebody waits whose claim is better.
        let open = if open != 0 && leadership.line.has_better(seat.rank()) { VACANT } else { open };
        // ORDER: Release pairs with the Acquire of `Leadership::try_take`.
        leadership.state.store(VACANT | open, Ordering::Release);
    }
}

impl<T> Drop for Leader<'_, T> {
    /// The follower inside is dropped next and passes leadership on.
    fn drop(&mut self) {
        self.release();
    }
}
