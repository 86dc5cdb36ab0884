//! The promotion protocol: which thread leads, who waits, who is woken. It knows no I/O and no tasks.
//!
//! [`Leadership`] guards a value of which only the leader may have the use (here: the reactor's event batch).
//! Roles are values. A thread that joins is a [`Follower`]; [`Follower::follow`] turns it into a [`Leader`] or
//! tells it that its own future was woken; [`Leader::vacate`] and [`Leader::promote`] turn it back. Dropping
//! either role, by a panic too, passes leadership on.
//!
//! The states, the transitions and the argument that no wake is lost are in the README beside this file.

mod leader;
mod parked;
mod rank;
mod seat;

pub(crate) use leader::Leader;
pub use parked::Order;
pub(crate) use rank::Rank;
use seat::Woken;
pub(crate) use seat::{Rouse, Seat};

use std::time::Duration;

use crate::fork::Origin;
use crate::spin;
use crate::sync::{self, Arc, AtomicBool, AtomicU8, AtomicUsize, Counter, Mutex, Ordering, ProtocolCell};
use parked::Parked;

/// Nobody leads.
const VACANT: u8 = 0;
/// Somebody leads and will be done within a few instructions.
const LED: u8 = 1;
/// Somebody leads and may stay for long: it asks the poller.
const WATCHED: u8 = 2;
/// Beside `LED` or `WATCHED`: the leader is a guest, and a host may ask for its place.
const BY_GUEST: u8 = 4;
/// The same for a relief, whose place anybody may ask for.
const BY_RELIEF: u8 = 8;
/// Whoever has the better claim was away for too long: until one of them is back, anybody may lead.
const OPEN: u8 = 16;

/// How often a thread looks again before it takes a short leadership for a long one.
const PATIENCE: u32 = if cfg!(any(paceline_loom, paceline_shuttle)) { 1 } else { 64 };

/// A lock on `T` whose holder is the leader of a set of threads.
#[derive(Debug)]
pub(crate) struct Leadership<T> {
    origin: Origin,
    state: AtomicU8,
    /// Threads in the set that are hosts, whatever they do right now.
    hosts: AtomicUsize,
    /// The same for guests.
    guests: AtomicUsize,
    /// Followers on the list; a hint that saves the lock.
    listed: AtomicUsize,
    /// A follower was woken to lead and has not noticed yet (LF4).
    on_the_way: AtomicBool,
    parked: Mutex<Parked>,
    /// How long a follower may stay awake before it parks.
    spin: Duration,
    guarded: ProtocolCell<T>,
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
            hosts: AtomicUsize::new(0),
            guests: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
            on_the_way: AtomicBool::new(false),
            parked: Mutex::new(Parked::new(order)),
            spin,
            guarded: ProtocolCell::new(guarded),
            taken: Counter::default(),
            free: Counter::default(),
            paid: Counter::default(),
            woken: Counter::default(),
            spun_nanos: Counter::default(),
        }
    }

    /// The current thread joins the set, in the place `seat`.
    pub(crate) fn join(&self, seat: Arc<Seat>, rank: Rank) -> Follower<'_, T> {
        self.enters(rank);
        Follower { leadership: self, seat, rank, granted: false, owes: false }
    }

    fn enters(&self, rank: Rank) {
        match rank {
            Rank::Host => _ = self.hosts.fetch_add(1, Ordering::Relaxed),
            Rank::Guest => _ = self.guests.fetch_add(1, Ordering::Relaxed),
            Rank::Relief => {}
        }
    }

    fn leaves(&self, rank: Rank) {
        match rank {
            Rank::Host => _ = self.hosts.fetch_sub(1, Ordering::Relaxed),
            Rank::Guest => _ = self.guests.fetch_sub(1, Ordering::Relaxed),
            Rank::Relief => {}
        }
    }

    /// A member's thread turns to something else for a while, a nested wait, or is back from it. Meanwhile nobody
    /// stands back for it.
    pub(crate) fn suspend(&self, rank: Rank, suspended: bool) {
        if suspended {
            self.leaves(rank);
            self.pass_on();
        } else {
            self.enters(rank);
        }
    }

    /// Whether nobody leads right now.
    pub(crate) fn is_vacant(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (LED | WATCHED) == 0
    }

    /// The least rank that may lead.
    fn reach(&self) -> Rank {
        if self.state.load(Ordering::Relaxed) & OPEN != 0 {
            Rank::Relief
        } else if self.hosts.load(Ordering::Relaxed) > 0 {
            Rank::Host
        } else if self.guests.load(Ordering::Relaxed) > 0 {
            Rank::Guest
        } else {
            Rank::Relief
        }
    }

    /// Wakes one parked follower to lead, if leadership is vacant: a host, or one of lower rank where there is none
    /// better.
    pub(crate) fn pass_on(&self) -> bool {
        // ORDER: pairs with the fence in `Follower::announce`. Either the follower sees the vacancy, or we
        // see the follower.
        sync::full_fence();
        self.is_vacant() && self.wake_one(self.reach())
    }

    /// Those who should lead do not come: opens leadership to anybody until one of them does, and wakes a parked
    /// follower, whatever its rank. False if leadership is vacant and nobody is parked.
    pub(crate) fn rescue(&self) -> bool {
        // A leader's Release is passed on by this exchange, which is part of its release sequence.
        let _ = self.state.compare_exchange(VACANT, OPEN, Ordering::Relaxed, Ordering::Relaxed);
        // ORDER: pairs with the fence in `Follower::announce`: either the follower sees that it may lead, or we see
        // the follower.
        sync::full_fence();
        !self.is_vacant() || self.wake_one(Rank::Relief)
    }

    /// Whether somebody waits who could take the place of a leader of this rank.
    fn better_waits(&self, than: Rank) -> bool {
        self.listed.load(Ordering::Relaxed) > 0 && sync::lock(&self.parked).has_better(than)
    }

    fn wake_one(&self, reach: Rank) -> bool {
        let one_is_enough = || self.on_the_way.load(Ordering::Relaxed);
        if self.listed.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Somebody who was chosen looks at the state after it has cleared the flag, and wakes the next if work is
        // left. That is not so for somebody who has yet to find out whether there is anyone to choose: so the flag is
        // set under the lock, and only with a seat in hand (L8).
        if one_is_enough() {
            return true;
        }
        let seat = {
            let mut parked = sync::lock(&self.parked);
            if one_is_enough() {
                return true;
            }
            let Some(seat) = parked.pop(reach) else { return false };
            self.on_the_way.store(true, Ordering::Relaxed);
            seat
        };
        self.listed.fetch_sub(1, Ordering::Relaxed);
        self.woken.add_shared(1);
        seat.grant_lead();
        true
    }

    fn try_take(&self, rank: Rank) -> bool {
        let (mut vacant, mut patience) = (VACANT, PATIENCE);
        loop {
            // A host is back: what was open is its own again.
            let taken = if rank == Rank::Host { LED } else { rank.leads() | vacant };
            // ORDER: Acquire pairs with the Release of `Leader::release`: the guarded value as the last
            // leader left it.
            match self.state.compare_exchange(vacant, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    self.taken.add(1);
                    return true;
                }
                Err(state @ (VACANT | OPEN)) => vacant = state,
                Err(state) if state & LED != 0 && patience > 0 => {
                    patience -= 1;
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
    rank: Rank,
    /// It was chosen to lead, whatever its rank.
    granted: bool,
    /// It led and is no host, so that somebody better may wait for what it left vacant.
    owes: bool,
}

/// What became of a follower that waited.
#[derive(Debug)]
#[must_use]
pub(crate) enum Turn<'a, T> {
    /// It leads.
    Lead(Leader<'a, T>),
    /// Its root future was woken.
    Root(Follower<'a, T>),
    /// Nobody needed it for as long as it was willing to wait.
    Unneeded,
}

impl<'a, T> Follower<'a, T> {
    /// Says what this thread brings along; cheap when it did not change.
    #[inline]
    pub(crate) fn set_rank(&mut self, rank: Rank) {
        if self.rank != rank {
            self.change_rank(rank);
        }
    }

    #[cold]
    fn change_rank(&mut self, rank: Rank) {
        self.leadership.enters(rank);
        self.leadership.leaves(std::mem::replace(&mut self.rank, rank));
    }

    /// Leads whatever its rank, if leadership is vacant.
    pub(crate) fn insist(mut self) -> Result<Leader<'a, T>, Self> {
        self.granted = true;
        self.try_lead()
    }

    #[inline]
    fn may_lead(&self) -> bool {
        // The last one says it all; the others are cheaper.
        self.granted
            || self.rank == Rank::Host
            || self.rank == Rank::Guest && self.leadership.hosts.load(Ordering::Relaxed) == 0
            || self.rank >= self.leadership.reach()
    }

    /// Leads, if leadership is vacant and this thread may have it; never waits.
    #[inline]
    pub(crate) fn try_lead(mut self) -> Result<Leader<'a, T>, Self> {
        if self.may_lead() && self.leadership.try_take(self.rank) {
            self.granted = false;
            return Ok(Leader { follower: self });
        }
        Err(self)
    }

    /// Leads if it can, else sleeps until it is chosen, its root future is woken, or `limit` has passed.
    /// `displace` is called when somebody of lower rank leads while this thread has to wait: it should make that one
    /// look up.
    pub(crate) fn follow(mut self, limit: Option<Duration>, displace: impl Fn()) -> Turn<'a, T> {
        loop {
            match self.try_lead() {
                Ok(leader) => return Turn::Lead(leader),
                Err(follower) => self = follower,
            }
            if self.granted || self.owes && !self.may_lead() {
                // Somebody else took the place we were woken for, or it is not ours to take again. A guest that only
                // comes by wakes nobody: the host that left leadership vacant is on its way back.
                (self.granted, self.owes) = (false, false);
                self.leadership.pass_on();
            }
            if self.seat.root_woken() {
                return Turn::Root(self);
            }
            if !self.announce() {
                continue;
            }
            if self.rank.displaces(self.leadership.state.load(Ordering::Relaxed)) {
                displace();
            }
            let woken = self.park(limit);
            self.granted = self.withdraw(woken.lead);
            if woken.root {
                if std::mem::take(&mut self.granted) {
                    self.leadership.pass_on();
                }
                return Turn::Root(self);
            }
            if !self.granted && limit.is_some() {
                return Turn::Unneeded;
            }
        }
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

    /// Goes on the list of the parked; false if leadership fell vacant meanwhile and this thread may have it.
    fn announce(&mut self) -> bool {
        sync::lock(&self.leadership.parked).push(self.seat.clone(), self.rank);
        self.leadership.listed.fetch_add(1, Ordering::Relaxed);
        // ORDER: pairs with the fence in `Leadership::pass_on`.
        sync::full_fence();
        if self.leadership.is_vacant() && self.may_lead() {
            self.granted = self.withdraw(false);
            return false;
        }
        true
    }

    /// Comes off the list. True if it was chosen to lead: then the token is consumed, wherever it was.
    fn withdraw(&self, chosen: bool) -> bool {
        let listed = !chosen && sync::lock(&self.leadership.parked).remove(&self.seat);
        if listed {
            self.leadership.listed.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        if !chosen {
            // Somebody took us off the list and is about to leave the token (L1).
            while !self.seat.take_lead() {
                sync::spin_hint();
            }
        }
        // ORDER: Relaxed, because whoever saw the flag set has its fence before the next one of ours, and no thread
        // sleeps or leaves without one: then we see the vacancy that it left.
        self.leadership.on_the_way.store(false, Ordering::Relaxed);
        true
    }
}

impl<T> Drop for Follower<'_, T> {
    /// Leaves the set. Whoever leaves vacant leadership behind wakes somebody to take it; but not in a forked child, where
    /// a thread that is not there may hold the lock of the list.
    fn drop(&mut self) {
        if !self.leadership.origin.is_here() {
            return;
        }
        self.leadership.leaves(self.rank);
        self.leadership.pass_on();
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
