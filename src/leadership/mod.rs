//! The promotion protocol: which thread leads, which threads wait, and which of them is woken. The module
//! knows neither I/O nor tasks.
//!
//! [`Leadership`] guards a value that only the leader may use, in this crate the reactor's event batch. Roles
//! are values. A thread that joins is a [`Follower`]; [`Follower::follow`] turns it into a [`Leader`] or
//! reports that its own future was woken; [`Leader::vacate`] and [`Leader::promote`] turn it back. Dropping
//! either role passes leadership on, also during a panic.
//!
//! The README beside this file has the states, the transitions and the argument that no wake is lost.

mod leader;
mod seat;

pub(crate) use crate::line::{Rank, WakeOrder};
pub(crate) use leader::Leader;
pub(crate) use seat::Seat;
use seat::Woken;

use std::time::Duration;

use crate::flight::{self, Reason, RoleNow};
use crate::line::{Called, Line};
use crate::spin;
use crate::sync::{self, Arc, AtomicU8, AtomicUsize, Counter, Ordering, ProtocolCell};

/// No thread leads.
const VACANT: u8 = 0;
/// A thread leads.
const LED: u8 = 1;
/// Beside `LED`: the leader is a guest, and a host may ask for its place.
const BY_GUEST: u8 = 2;
/// Beside `LED`: the leader is a relief, and a host or a guest may ask for its place.
const BY_RELIEF: u8 = 4;
/// The threads with the better claim were away for too long: a thread of any rank may lead until one of them
/// is back.
const OPEN_TO_ALL: u8 = 8;

/// Returns the state in which a thread of this rank leads.
#[inline]
fn led_by(rank: Rank) -> u8 {
    match rank {
        Rank::Host => LED,
        Rank::Guest => LED | BY_GUEST,
        Rank::Relief => LED | BY_RELIEF,
    }
}

fn must_make_way(state: u8, rank: Rank) -> bool {
    state & BY_GUEST != 0 && rank > Rank::Guest || state & BY_RELIEF != 0 && rank > Rank::Relief
}

/// A lock on `T` whose holder is the leader of a set of threads.
#[derive(Debug)]
pub(crate) struct Leadership<T> {
    state: AtomicU8,
    /// The number of threads of each rank in the set, whatever they do at the moment.
    members: [AtomicUsize; 3],
    /// The followers that sleep, or are about to.
    line: Line<Seat>,
    /// How long a follower may stay awake before it parks.
    spin: Duration,
    guarded: ProtocolCell<T>,
    /// Leaderships taken so far. If the count rises between two looks, the deputy knows that threads still
    /// lead.
    pub(crate) taken: Counter,
    /// Promotions that woke no thread, and promotions that woke a follower.
    pub(crate) free: Counter,
    pub(crate) paid: Counter,
    /// Followers woken to lead, for any reason.
    pub(crate) woken: Counter,
    /// Time that followers stayed awake before they parked, or instead of parking.
    pub(crate) spun_nanos: Counter,
}

// SAFETY: `T` is reached only through the one `Leader`, as through a mutex.
unsafe impl<T: Send> Send for Leadership<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Leadership<T> {}

impl<T> Leadership<T> {
    /// Makes a set without members and without a leader. `order` says which of its sleeping followers is
    /// called first. A follower may stay awake for `spin` without work.
    pub(crate) fn new(guarded: T, order: WakeOrder, spin: Duration) -> Self {
        Self {
            state: AtomicU8::new(VACANT),
            members: [(); 3].map(|()| AtomicUsize::new(0)),
            line: Line::marking(order, Seat::grant_lead),
            spin,
            guarded: ProtocolCell::new(guarded),
            taken: Counter::default(),
            free: Counter::default(),
            paid: Counter::default(),
            woken: Counter::default(),
            spun_nanos: Counter::default(),
        }
    }

    /// Adds the current thread, which sleeps in `seat`, to the set. The drop of the follower removes it.
    pub(crate) fn join(&self, seat: Arc<Seat>) -> Follower<'_, T> {
        seat.is_member.set(true);
        self.add_member(seat.rank());
        let follower = Follower { leadership: self, seat };
        // The seat may have been in another set before.
        follower.set_claims(false, false);
        follower
    }

    /// Changes the rank of the current thread, whose seat this is; also in the counts of members, if it is
    /// one.
    pub(crate) fn set_rank(&self, seat: &Seat, rank: Rank) {
        if seat.is_member.is_set() {
            self.add_member(rank);
            self.remove_member(seat.rank());
        }
        seat.set_rank(rank);
    }

    /// Sets whether the polls that events cause are long: then waking a follower pays for each event.
    pub(crate) fn set_long_polls(&self, are_long: bool) {
        self.line.set_long_pieces(are_long);
    }

    fn members(&self, rank: Rank) -> &AtomicUsize {
        &self.members[rank as usize]
    }

    fn add_member(&self, rank: Rank) {
        // ORDER: Relaxed, here and below: the number orders no other access.
        self.members(rank).fetch_add(1, Ordering::Relaxed);
    }

    fn remove_member(&self, rank: Rank) {
        self.members(rank).fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the current thread out of the set while it does something else, a nested wait. Meanwhile no
    /// thread stands back for it; if leadership is vacant, wakes a follower to take it. Returns whether the
    /// thread was in the set.
    pub(crate) fn suspend(&self, seat: &Seat) -> bool {
        let was_member = seat.is_member.is_set();
        if was_member {
            self.leave(seat);
        }
        was_member
    }

    /// Puts the current thread back into the set after [`suspend`](Leadership::suspend) returned true.
    pub(crate) fn resume(&self, seat: &Seat) {
        seat.is_member.set(true);
        self.add_member(seat.rank());
    }

    /// Takes the thread out of the set. If leadership is vacant, wakes a follower to take it.
    fn leave(&self, seat: &Seat) {
        seat.is_member.set(false);
        self.remove_member(seat.rank());
        self.pass_on(Reason::Leaves);
    }

    pub(crate) fn is_vacant(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LED == 0
    }

    /// Returns the seats in the line.
    pub(crate) fn waiting(&self) -> Vec<Arc<Seat>> {
        self.line.waiting()
    }

    /// Returns the least rank that may lead: any while leadership is open; otherwise the best rank in the
    /// set, asleep or awake.
    fn reach(&self) -> Rank {
        if self.state.load(Ordering::Relaxed) & OPEN_TO_ALL != 0 {
            return Rank::Relief;
        }
        let has_member = |rank: &Rank| self.members(*rank).load(Ordering::Relaxed) > 0;
        [Rank::Host, Rank::Guest].into_iter().find(has_member).unwrap_or(Rank::Relief)
    }

    /// If leadership is vacant, wakes one parked follower to lead, of the least rank that may lead or a
    /// better one, unless another one is on its way. Returns true if it has woken one, or if one is on its
    /// way and others are parked; false if leadership is not vacant, or no parked follower may lead.
    pub(crate) fn pass_on(&self, reason: Reason) -> bool {
        // ORDER: pairs with the fences in `Line::enter` and `Line::leave`. Either the follower sees the
        // vacancy, or this thread sees the follower. The fence is not left to `call`, because the state is
        // read after it, too.
        sync::full_fence();
        self.is_vacant() && self.wake(self.line.invite(self.reach()), reason)
    }

    /// Wakes one parked follower as [`pass_on`](Self::pass_on) does, whether or not leadership is vacant: to
    /// lead, or to steal events.
    pub(crate) fn call(&self, reason: Reason) -> bool {
        // ORDER: as in `pass_on`, because the members are read after it.
        sync::full_fence();
        self.wake(self.line.invite(self.reach()), reason)
    }

    /// Opens vacant leadership to threads of any rank until a thread with a better claim is back, and wakes a
    /// parked follower of any rank, unless one is on its way. For the deputy, if the threads that should lead
    /// do not. Returns false if leadership is vacant and no follower is parked; true also if a thread leads.
    pub(crate) fn rescue(&self) -> bool {
        // ORDER: Relaxed suffices. The exchange belongs to the release sequence of the last leader's store,
        // so it passes that Release on.
        let _ = self.state.compare_exchange(VACANT, OPEN_TO_ALL, Ordering::Relaxed, Ordering::Relaxed);
        !self.is_vacant() || self.wake(self.line.call(Rank::Relief), Reason::Deputy)
    }

    /// Wakes the called follower to lead. Returns false if the line had no follower that may lead, even if a
    /// called one is on its way; true if others sleep and one is on its way.
    fn wake(&self, called: Called<Seat>, reason: Reason) -> bool {
        match called {
            Called::NoSleeper => return false,
            Called::OnTheWay => {}
            Called::Wake(seat) => {
                self.woken.add_shared(1);
                flight::promotes(seat.number, reason);
                seat.unpark_granted();
            }
        }
        true
    }

    /// Takes leadership if it is vacant, and returns whether it was. The caller has checked that the rank of
    /// the thread may lead.
    fn try_take(&self, seat: &Seat) -> bool {
        let mut vacant = VACANT;
        while vacant & LED == 0 {
            // A host is back: open leadership ends, because `LED` does not carry the bit over.
            let led = if seat.is_host() { LED } else { led_by(seat.rank()) | vacant };
            // ORDER: Acquire pairs with the Release of `Leader::release`: the guarded value as the last
            // leader left it.
            match self.state.compare_exchange(vacant, led, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    self.taken.add(1);
                    return true;
                }
                Err(state) => vacant = state,
            }
        }
        false
    }
}

/// The role of a thread of the set that does not lead: it processes, or waits for its turn.
#[derive(Debug)]
pub(crate) struct Follower<'a, T> {
    leadership: &'a Leadership<T>,
    seat: Arc<Seat>,
}

/// How the wait of a follower ended.
#[derive(Debug)]
#[must_use]
pub(crate) enum Waited<'a, T> {
    /// The thread leads.
    Lead(Leader<'a, T>),
    /// The root future of the thread was woken, or another thread has taken the leadership that this one was
    /// woken for.
    Awake(Follower<'a, T>),
    /// The limit has passed, and the thread was not chosen. The thread has left the set.
    Unneeded,
}

impl<'a, T> Follower<'a, T> {
    /// Takes leadership if it is vacant, whatever the rank. Returns the follower if it is not. Never sleeps.
    pub(crate) fn insist(self) -> Result<Leader<'a, T>, Self> {
        self.set_claims(true, false);
        self.try_lead()
    }

    #[inline]
    fn set_claims(&self, granted: bool, owes: bool) {
        self.seat.granted.store(granted, Ordering::Relaxed);
        self.seat.owes.store(owes, Ordering::Relaxed);
    }

    #[inline]
    fn is_granted(&self) -> bool {
        self.seat.granted.load(Ordering::Relaxed)
    }

    /// Returns whether the thread may take vacant leadership: it was chosen, or no better rank is in the set.
    #[inline]
    pub(crate) fn may_lead(&self) -> bool {
        // A host may lead in any case, so it saves the reads of `reach`.
        self.is_granted() || self.seat.is_host() || self.seat.rank() >= self.leadership.reach()
    }

    /// Takes leadership if it is vacant and this thread may have it. Otherwise returns the follower. Never
    /// sleeps.
    #[inline]
    pub(crate) fn try_lead(self) -> Result<Leader<'a, T>, Self> {
        if self.may_lead() && self.leadership.try_take(&self.seat) {
            flight::role(RoleNow::Leads);
            return Ok(Leader { follower: self });
        }
        Err(self)
    }

    /// Wakes a follower to share so many events that this thread holds, if that is worth it. The woken thread
    /// leads if it can.
    #[inline]
    pub(crate) fn share_out(&self, held: usize) {
        if self.leadership.line.is_wake_worth(self.seat.rank(), || held) {
            self.leadership.call(Reason::Work);
        }
    }

    /// Takes leadership if it can, else sleeps until the thread leads, its root future is woken, or a sleep
    /// has lasted for `limit`. In the last case the thread has left the set when this returns. A chosen
    /// thread that does not lead in the end wakes the next follower. A thread that led and is no host wakes
    /// the follower with the better claim before it sleeps, if leadership is vacant. Calls `displace` if a
    /// thread of lower rank leads while this one has to wait: `displace` should make the leader check
    /// [`Leader::displaced`].
    pub(crate) fn follow(mut self, limit: Option<Duration>, displace: impl Fn()) -> Waited<'a, T> {
        loop {
            match self.try_lead() {
                Ok(leader) => return Waited::Lead(leader),
                Err(follower) => self = follower,
            }
            let was_chosen = self.is_granted();
            if was_chosen || self.seat.owes.load(Ordering::Relaxed) && !self.may_lead() {
                // Another thread has taken the leadership that this one was woken for, or a thread with a
                // better claim waits. A guest that neither led nor was chosen wakes no thread: the host that
                // left leadership vacant is on its way back.
                self.set_claims(false, false);
                self.leadership.pass_on(Reason::PassesOn);
            }
            if was_chosen || self.seat.root_woken() {
                return Waited::Awake(self);
            }
            let Some(woken) = self.wait_in_line(limit, &displace) else { continue };
            if woken.root {
                if self.seat.granted.swap(false, Ordering::Relaxed) {
                    self.leadership.pass_on(Reason::PassesOn);
                }
                return Waited::Awake(self);
            }
            if !self.is_granted() && limit.is_some() {
                return Waited::Unneeded;
            }
        }
    }

    /// Sleeps in the line, at most for `limit`, and records in `granted` whether the thread was chosen; if
    /// so, its leadership token is consumed. Returns why the thread woke up; `None` if it did not sleep,
    /// because leadership fell vacant meanwhile and this thread may have it. Calls `displace` before the
    /// sleep if the leader has to make way for this thread.
    fn wait_in_line(&self, limit: Option<Duration>, displace: impl Fn()) -> Option<Woken> {
        let (leadership, rank) = (self.leadership, self.seat.rank());
        leadership.line.enter(&self.seat, rank);
        let sleeps = !(leadership.is_vacant() && self.may_lead());
        let woken = sleeps.then(|| {
            flight::role(RoleNow::Follows);
            if must_make_way(leadership.state.load(Ordering::Relaxed), rank) {
                displace();
            }
            self.park(limit)
        });
        flight::role(RoleNow::Processes);
        let granted = leadership.line.leave(&self.seat);
        self.seat.granted.store(granted, Ordering::Relaxed);
        if granted && !woken.is_some_and(|woken| woken.lead) {
            // The thread was chosen when it was about to leave.
            let has_token = self.seat.take_lead();
            debug_assert!(has_token, "a call takes a seat out of the line and sets its token");
        }
        woken
    }

    /// Waits for a token: awake for a moment, if that pays, then asleep until `limit` has passed. Returns
    /// which tokens were set; perhaps none.
    fn park(&self, limit: Option<Duration>) -> Woken {
        let (woken, awake) =
            spin::wait(self.leadership.spin, || self.seat.is_called(), || self.seat.park(limit));
        if !awake.is_zero() {
            self.leadership.spun_nanos.add_shared(awake.as_nanos() as u64);
        }
        woken
    }
}

impl<T> Drop for Follower<'_, T> {
    fn drop(&mut self) {
        self.leadership.leave(&self.seat);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
