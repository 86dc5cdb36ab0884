//! The promotion protocol: which thread leads, who waits, who is woken. It knows no I/O and no tasks.
//!
//! [`Leadership`] guards a value of which only the leader may have the use (here: the reactor's event batch).
//! Roles are values. A thread that joins is a [`Follower`]; [`Follower::follow`] turns it into a [`Leader`] or
//! tells it that its own future was woken; [`Leader::vacate`] and [`Leader::promote`] turn it back. Dropping
//! either role, by a panic too, passes leadership on.
//!
//! The states, the transitions and the argument that no wake is lost are in the README beside this file.

mod leader;
mod seat;

pub(crate) use crate::line::{Order, Rank};
pub(crate) use leader::Leader;
use seat::Woken;
pub(crate) use seat::{Rouse, Seat};

use std::time::Duration;

use crate::fork::Origin;
use crate::gain::Gain;
use crate::line::{Called, Line};
use crate::spin;
use crate::sync::{self, Arc, AtomicU8, Counter, Ordering, ProtocolCell, Tally};

/// Nobody leads.
const VACANT: u8 = 0;
/// Somebody leads and will be done within a few instructions.
const LED: u8 = 1;
/// Somebody leads and may stay for long: it asks the poller.
const POLLING: u8 = 2;
/// Beside `LED` or `POLLING`: the leader is a guest, and a host may ask for its place.
const BY_GUEST: u8 = 4;
/// The same for a relief, whose place anybody may ask for.
const BY_RELIEF: u8 = 8;
/// Whoever has the better claim was away for too long: until one of them is back, anybody may lead.
const OPEN: u8 = 16;

/// What the state says while a thread of this rank leads.
#[inline]
fn led_by(rank: Rank) -> u8 {
    match rank {
        Rank::Host => LED,
        Rank::Guest => LED | BY_GUEST,
        Rank::Relief => LED | BY_RELIEF,
    }
}

/// Whether a leader with this `state` should make way for somebody of this rank.
fn makes_way(state: u8, rank: Rank) -> bool {
    state & BY_GUEST != 0 && rank > Rank::Guest || state & BY_RELIEF != 0 && rank > Rank::Relief
}

/// How often a thread looks again before it takes a short leadership for a long one.
const LOOKS: u32 = if cfg!(any(paceline_loom, paceline_shuttle)) { 1 } else { 64 };

/// What it costs that an event is processed by another thread than the one before: leadership, the batch and what
/// the connection has in memory go from one core to another.
const EVENT_MOVED: Duration = Duration::from_micros(8);

/// A lock on `T` whose holder is the leader of a set of threads.
#[derive(Debug)]
pub(crate) struct Leadership<T> {
    origin: Origin,
    state: AtomicU8,
    /// How many threads of each rank are in the set, whatever they do right now.
    members: [Tally; 3],
    /// The followers that sleep, or are about to.
    line: Line<Seat>,
    /// How long a follower may stay awake before it parks.
    spin: Duration,
    guarded: ProtocolCell<T>,
    /// What promotions brought that woke somebody.
    pub(crate) gain: Gain,
    /// Leaderships taken so far: the deputy's proof that somebody looks.
    pub(crate) taken: Counter,
    /// Promotions that woke nobody / that woke a follower.
    pub(crate) free: Counter,
    pub(crate) paid: Counter,
    /// Followers woken to lead, for any reason.
    pub(crate) woken: Counter,
    /// Time that followers stayed awake before they parked, or instead.
    pub(crate) spun_nanos: Counter,
}

// SAFETY: `T` is reached only through the one `Leader`, as through a mutex.
unsafe impl<T: Send> Send for Leadership<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Leadership<T> {}

impl<T> Leadership<T> {
    /// `spin` is how long a follower may stay awake without work.
    pub(crate) fn new(guarded: T, order: Order, spin: Duration) -> Self {
        Self {
            origin: Origin::here(),
            state: AtomicU8::new(VACANT),
            members: [(); 3].map(|()| Tally::new()),
            line: Line::new(order),
            spin,
            guarded: ProtocolCell::new(guarded),
            gain: Gain::new(EVENT_MOVED),
            taken: Counter::default(),
            free: Counter::default(),
            paid: Counter::default(),
            woken: Counter::default(),
            spun_nanos: Counter::default(),
        }
    }

    /// The current thread joins the set, in the place `seat`.
    pub(crate) fn join(&self, seat: Arc<Seat>) -> Follower<'_, T> {
        seat.set_member(true);
        self.enters(seat.rank());
        Follower { leadership: self, seat, granted: false, owes: false }
    }

    /// The thread of this seat, which is the current one, brings something else along than it did.
    pub(crate) fn set_rank(&self, seat: &Seat, rank: Rank) {
        if seat.is_member() {
            self.enters(rank);
            self.leaves(seat.rank());
        }
        seat.set_rank(rank);
    }

    fn members(&self, rank: Rank) -> &Tally {
        &self.members[rank as usize]
    }

    fn enters(&self, rank: Rank) {
        self.members(rank).add();
    }

    fn leaves(&self, rank: Rank) {
        self.members(rank).remove();
    }

    /// The thread turns to something else for a while, a nested wait, if it is in the set. Meanwhile nobody stands back for it.
    pub(crate) fn suspend(&self, seat: &Seat) -> bool {
        let was_member = seat.is_member();
        if was_member {
            self.leave(seat);
        }
        was_member
    }

    /// It is back from that.
    pub(crate) fn resume(&self, seat: &Seat) {
        seat.set_member(true);
        self.enters(seat.rank());
    }

    /// Whoever leaves vacant leadership behind wakes somebody to take it.
    fn leave(&self, seat: &Seat) {
        seat.set_member(false);
        self.leaves(seat.rank());
        self.pass_on();
    }

    /// Whether nobody leads right now.
    pub(crate) fn is_vacant(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (LED | POLLING) == 0
    }

    /// The rank of who leads, if anybody does right now.
    pub(crate) fn rank_of_leader(&self) -> Option<Rank> {
        let state = self.state.load(Ordering::Relaxed);
        let rank = match state & (BY_GUEST | BY_RELIEF) {
            0 => Rank::Host,
            BY_GUEST => Rank::Guest,
            _ => Rank::Relief,
        };
        (state & (LED | POLLING) != 0).then_some(rank)
    }

    /// Those in the line.
    pub(crate) fn waiting(&self) -> Vec<Arc<Seat>> {
        self.line.waiting()
    }

    /// The least rank that may lead.
    fn reach(&self) -> Rank {
        if self.state.load(Ordering::Relaxed) & OPEN != 0 {
            return Rank::Relief;
        }
        let is_there = |rank: &Rank| self.members(*rank).get() > 0;
        [Rank::Host, Rank::Guest].into_iter().find(is_there).unwrap_or(Rank::Relief)
    }

    /// Wakes one parked follower to lead, if leadership is vacant: a host, or one of lower rank where there is none
    /// better. False if it is vacant no more, or there is no such follower.
    pub(crate) fn pass_on(&self) -> bool {
        // ORDER: pairs with the fences in `Line::enter` and `Line::leave`. Either the follower sees the vacancy, or we see
        // the follower. Not left to `Line::call`: we read the state and who is a member after it, too.
        sync::full_fence();
        self.is_vacant() && self.wake(self.line.invite(self.reach()))
    }

    /// Those who should lead do not come: opens leadership to anybody until one of them does, and wakes a parked
    /// follower, whatever its rank. False if leadership is vacant and nobody is parked.
    pub(crate) fn rescue(&self) -> bool {
        // A leader's Release is passed on by this exchange, which is part of its release sequence.
        let _ = self.state.compare_exchange(VACANT, OPEN, Ordering::Relaxed, Ordering::Relaxed);
        !self.is_vacant() || self.wake(self.line.call(Rank::Relief))
    }

    /// False if there is nobody to lead.
    fn wake(&self, called: Called<Seat>) -> bool {
        match called {
            Called::Nobody => return false,
            Called::OnTheWay => {}
            Called::Wake(seat) => {
                self.woken.add_shared(1);
                seat.grant_lead();
            }
        }
        true
    }

    fn try_take(&self, seat: &Seat) -> bool {
        let (mut vacant, mut looks) = (VACANT, LOOKS);
        loop {
            // A host is back: what was open is its own again.
            let taken = if seat.is_host() { LED } else { led_by(seat.rank()) | vacant };
            // ORDER: Acquire pairs with the Release of `Leader::release`: the guarded value as the last
            // leader left it.
            match self.state.compare_exchange(vacant, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    self.taken.add(1);
                    return true;
                }
                Err(state @ (VACANT | OPEN)) => vacant = state,
                Err(state) if state & LED != 0 && looks > 0 => {
                    looks -= 1;
                    sync::spin_hint();
                }
                Err(_) => return false,
            }
        }
    }
}

/// A thread of the set that does not lead: it processes, or waits for its turn.
#[derive(Debug)]
pub(crate) struct Follower<'a, T> {
    leadership: &'a Leadership<T>,
    seat: Arc<Seat>,
    /// It was chosen to lead, whatever its rank.
    granted: bool,
    /// It led and is no host, so that somebody better may wait for what it left vacant.
    owes: bool,
}

/// What became of a follower that waited.
#[derive(Debug)]
#[must_use]
pub(crate) enum Waited<'a, T> {
    /// It leads.
    Lead(Leader<'a, T>),
    /// Its root future was woken.
    Root(Follower<'a, T>),
    /// Nobody needed it for as long as it was willing to wait.
    Unneeded,
}

impl<'a, T> Follower<'a, T> {
    /// Leads whatever its rank, if leadership is vacant.
    pub(crate) fn insist(mut self) -> Result<Leader<'a, T>, Self> {
        self.granted = true;
        self.try_lead()
    }

    #[inline]
    fn may_lead(&self) -> bool {
        // A host may in any case, and need not look.
        self.granted || self.seat.is_host() || self.seat.rank() >= self.leadership.reach()
    }

    /// Leads, if leadership is vacant and this thread may have it; never waits.
    #[inline]
    pub(crate) fn try_lead(self) -> Result<Leader<'a, T>, Self> {
        if self.may_lead() && self.leadership.try_take(&self.seat) {
            return Ok(Leader { follower: self });
        }
        Err(self)
    }

    /// Leads if it can, else sleeps until it is chosen, its root future is woken, or `limit` has passed.
    /// `displace` is called when somebody of lower rank leads while this thread has to wait: it should make that one
    /// look up.
    pub(crate) fn follow(mut self, limit: Option<Duration>, displace: impl Fn()) -> Waited<'a, T> {
        loop {
            match self.try_lead() {
                Ok(leader) => return Waited::Lead(leader),
                Err(follower) => self = follower,
            }
            if self.granted && self.leadership.gain.answers().is_some() {
                // Who promoted it was back before it came.
                self.leadership.gain.learns(false);
            }
            if self.granted || self.owes && !self.may_lead() {
                // Somebody else took the place we were woken for, or it is not ours to take again. A guest that only
                // comes by wakes nobody: the host that left leadership vacant is on its way back.
                (self.granted, self.owes) = (false, false);
                self.leadership.pass_on();
            }
            if self.seat.root_woken() {
                return Waited::Root(self);
            }
            let Some(woken) = self.wait_in_line(limit, &displace) else { continue };
            if woken.root {
                if std::mem::take(&mut self.granted) {
                    // It has other work, which says nothing about this.
                    let _ = self.leadership.gain.answers();
                    self.leadership.pass_on();
                }
                return Waited::Root(self);
            }
            if !self.granted && limit.is_some() {
                return Waited::Unneeded;
            }
        }
    }

    /// Sleeps in the line; or not, if leadership fell vacant meanwhile and this thread may have it.
    fn wait_in_line(&mut self, limit: Option<Duration>, displace: impl Fn()) -> Option<Woken> {
        let (leadership, rank) = (self.leadership, self.seat.rank());
        leadership.line.enter(&self.seat, rank);
        let sleeps = !(leadership.is_vacant() && self.may_lead());
        let woken = sleeps.then(|| {
            if makes_way(leadership.state.load(Ordering::Relaxed), rank) {
                displace();
            }
            self.park(limit)
        });
        self.granted = leadership.line.leave(&self.seat);
        let mut has_token = woken.is_some_and(|woken| woken.lead);
        // Who was chosen has the token, or somebody is about to leave it (L1).
        while self.granted && !has_token {
            sync::spin_hint();
            has_token = self.seat.take_lead();
        }
        woken
    }

    /// Waits for a token: awake for a moment, if that pays, then asleep.
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
    /// Leaves the set; but not in a forked child, where a thread that is not there may hold the lock of the line.
    fn drop(&mut self) {
        if self.leadership.origin.is_here() {
            self.leadership.leave(&self.seat);
        }
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests;
