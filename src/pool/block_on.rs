//! `block_on`: the loop of every thread that runs async code.
//!
//! ```text
//! loop {
//!     poll my root future if it was woken      PROCESSING: a worker's root future runs the executor's tasks
//!     become the leader, or wait               FOLLOWER
//!     wait for an event                        LEADER
//!     promote                                  leadership is vacant before any user code runs (LF2)
//!     fire the event                           PROCESSING: the wakers fill the direct slot
//! }
//! ```

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::stay::Stay;
use super::{Pool, Promotion, Station};
use crate::executor::{self, Host};
use crate::flight::Membership;
use crate::leadership::{Follower, Leader, Waited};
use crate::reactor::{self, Batch, Event};
use crate::simulated;

/// How a `block_on` gets its pool.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PoolSource<'a> {
    /// The pool is known.
    Given(&'a Arc<Pool>),
    /// The function returns the pool. `block_on` calls it when the future has to wait for the first time.
    Current(fn() -> io::Result<Arc<Pool>>),
}

/// The future that a thread awaits while it runs a crew's tasks. A trait object, because it is polled rarely:
/// so the code that runs the tasks is compiled once, and inlined more than one copy for each type of future.
pub(super) type Root<'a> = Pin<&'a mut (dyn Future<Output = ()> + 'a)>;

/// Drives `future` to its end, and returns its output. Returns `None` if the deputy wants the thread to
/// leave, or if the thread was not needed for its whole linger time. Panics if the future has to wait and the
/// default instance, which is needed then, cannot be had.
pub(crate) fn drive<F: Future>(
    source: PoolSource<'_>,
    station: Arc<Station>,
    future: F,
) -> Option<F::Output> {
    let stay = Stay::begin(&station);
    let waker = Waker::from(station.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    // A future that does not have to wait needs no pool.
    let pool = match source {
        PoolSource::Given(pool) => pool.clone(),
        PoolSource::Current(find) => {
            station.take_woken();
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return Some(output);
            }
            find().unwrap_or_else(|error| panic!("the default instance cannot be started: {error}"))
        }
    };
    pool.reactor.assert_not_inherited();
    // If this thread is in a simulation, and the pool is not its own, waits need the clocks of the system.
    let _clocks = (!pool.reactor.is_simulated()).then(simulated::system_clocks);
    stay.join(&pool);
    let mut rider = Rider { pool: &pool, station: &station, flight: Membership::new() };
    let mut follower = pool.leadership.join(station.seat.clone());
    loop {
        let mut polled = Poll::Pending;
        if rider.take_woken() {
            polled = future.as_mut().poll(&mut cx);
        }
        // The future may have forked, or code that an event has woken: a child does not get past this.
        pool.reactor.assert_not_inherited();
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        if station.goes.is_set() {
            return None;
        }
        let mut leader = match rider.become_leader_or_wait(follower) {
            Waited::Lead(leader) => leader,
            Waited::Root(woken) => {
                station.stage.step();
                follower = woken;
                continue;
            }
            Waited::Unneeded => return None,
        };
        let event = rider.wait_for_event(&mut leader);
        follower = rider.promote_new_leader(leader, &event);
        if let Some(event) = event {
            station.stage.begin_work();
            reactor::keep_spare(pool.reactor.fire(event));
            station.stage.end_work();
        }
    }
}

/// A `block_on` in progress, as the steps of the loop see it.
pub(super) struct Rider<'a> {
    pub(super) pool: &'a Arc<Pool>,
    pub(super) station: &'a Station,
    flight: Membership,
}

impl Rider<'_> {
    /// Consumes all wake-ups of the root future, and returns whether there was one. Then looks for a flight
    /// recorder: its start wakes the thread.
    #[inline]
    fn take_woken(&mut self) -> bool {
        let is_woken = self.station.take_woken();
        self.flight.refresh(&self.pool.recording);
        is_woken
    }

    /// Leads if the thread can, else waits until it can or its root future is woken. Does not wait if that
    /// was woken, or a runner has tasks.
    #[inline]
    fn become_leader_or_wait<'l>(&mut self, follower: Follower<'l, Batch>) -> Waited<'l, Batch> {
        // It was kept for the task woken last, which has had the time to wait again. This and the next line
        // may run user code, and may wake the future.
        reactor::keep_spare(None);
        executor::here(Host::forget_left);
        if self.station.is_woken() && !self.pool.reactor.is_needed() {
            return Waited::Root(follower);
        }
        let follower = match follower.try_lead() {
            Ok(leader) => return Waited::Lead(leader),
            Err(follower) => follower,
        };
        if self.station.is_woken() || !self.station.try_rest() {
            return Waited::Root(follower);
        }
        let turn = follower.follow(self.station.linger, || self.pool.reactor.interrupt());
        // The thread may have slept: a new turn begins, and its runners leave the lines.
        reactor::next_turn();
        executor::here(Host::rise);
        self.note_wake_up();
        turn
    }

    /// Returns the next event of the batch, or waits for one. Returns `None` if the root future was woken, a
    /// runner has tasks, or a thread with a better claim wants to lead.
    #[inline]
    fn wait_for_event(&mut self, leader: &mut Leader<'_, Batch>) -> Option<Event> {
        let reactor = &self.pool.reactor;
        let next = leader.with(|batch| batch.next(reactor));
        if next.is_some() {
            return next;
        }
        self.wait_for_batch(leader);
        leader.with(|batch| batch.next(reactor))
    }

    /// Gives leadership up before any user code runs (LF2). Wakes a follower to take it if there is an
    /// `event`, and if that is worth its cost by the pool's [`Promotion`].
    #[inline]
    fn promote_new_leader<'l>(
        &mut self,
        mut leader: Leader<'l, Batch>,
        event: &Option<Event>,
    ) -> Follower<'l, Batch> {
        let (left, weight) = leader.with(|batch| (batch.left(), batch.weight()));
        executor::here(|host| host.events_wait.set(left > 0));
        match self.pool.policy.promotion {
            _ if event.is_none() => leader.vacate(),
            Promotion::Adaptive if leader.is_wake_worth(weight) => leader.promote(),
            Promotion::Eager if leader.has_follower() => leader.promote(),
            _ => leader.vacate(),
        }
    }

    /// Notes that the thread may have slept, and notifies the deputy. The stage comes first: what the
    /// deputy knows of the time before the sleep does not hold any more.
    pub(super) fn note_wake_up(&self) {
        self.station.stage.step();
        self.pool.deputy.notify();
    }
}
