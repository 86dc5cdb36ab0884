//! `block_on`: the loop of every thread that runs async code.
//!
//! ```text
//! loop {
//!     poll my root future if it was woken      PROCESSING: a worker's root future runs the executor's tasks
//!     take the next event that I hold, or:
//!         become the leader, steal, or wait    FOLLOWER
//!         wait for events, take them along     LEADER
//!         promote                              leadership is vacant before any user code runs (LF2)
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
use crate::reactor::{self, Batch, Event, Own};
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
    let share = pool.reactor.shares.join();
    station.share.set(share.number).expect("a station has one share");
    let mut rider = Rider { pool: &pool, station: &station, flight: Membership::new(), share };
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
        // What it holds it fires first.
        if station.goes.is_set() && rider.share.left() == 0 {
            return None;
        }
        let event;
        (event, follower) = rider.next_event(follower)?;
        if let Some(event) = event {
            station.stage.toggle_work();
            reactor::keep_spare(pool.reactor.fire(event));
            station.stage.toggle_work();
        }
    }
}

/// A `block_on` in progress, as the steps of the loop see it.
pub(super) struct Rider<'a> {
    pub(super) pool: &'a Arc<Pool>,
    pub(super) station: &'a Station,
    /// The events that this thread holds.
    pub(super) share: Own<'a>,
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

    /// Returns the next event: one that this thread holds, else one that it finds as the leader, or steals.
    /// Without an event, the root future was woken, or a runner has tasks. Returns `None` if the thread was
    /// not needed for its whole linger time.
    #[inline]
    fn next_event<'l>(
        &mut self,
        follower: Follower<'l, Batch>,
    ) -> Option<(Option<Event>, Follower<'l, Batch>)> {
        if let Some(event) = self.share.take() {
            executor::here(|host| host.events_wait.set(self.share.left() > 0));
            return Some((Some(event), follower));
        }
        // It was kept for the task woken last, which has had the time to wait again. This and the next line
        // may run user code, and may wake the future.
        reactor::keep_spare(None);
        executor::here(Host::forget_left);
        if self.station.is_woken() && !self.pool.reactor.is_needed() {
            self.station.stage.step();
            return Some((None, follower));
        }
        let mut leader = match follower.try_lead() {
            Ok(leader) => leader,
            Err(follower) => {
                if let Some(event) = self.steal(&follower) {
                    return Some((Some(event), follower));
                }
                match self.wait_in_line(follower) {
                    Waited::Lead(leader) => leader,
                    Waited::Awake(follower) => {
                        self.station.stage.step();
                        return Some((None, follower));
                    }
                    Waited::Unneeded => return None,
                }
            }
        };
        let event = self.wait_for_event(&mut leader);
        let follower = self.promote_new_leader(leader, &event);
        Some((event, follower))
    }

    /// Returns an event of a share that is stuck, or the next event of the batch, or waits for one. Returns
    /// `None` if the root future was woken, a runner has tasks, or a thread with a better claim wants to
    /// lead.
    #[inline]
    fn wait_for_event(&mut self, leader: &mut Leader<'_, Batch>) -> Option<Event> {
        let reactor = &self.pool.reactor;
        let stuck = self.share.steal_what_is_stuck();
        let found = stuck.or_else(|| leader.with(|batch| batch.next(reactor, &self.share)));
        if found.is_some() {
            return found;
        }
        let stolen = self.wait_for_batch(leader);
        stolen.or_else(|| leader.with(|batch| batch.next(reactor, &self.share)))
    }

    /// Gives leadership up before any user code runs (LF2). Wakes a follower to take it if there is an
    /// `event`, and if that is worth its cost by the pool's [`Promotion`].
    #[inline]
    fn promote_new_leader<'l>(
        &mut self,
        mut leader: Leader<'l, Batch>,
        event: &Option<Event>,
    ) -> Follower<'l, Batch> {
        let held = self.share.left();
        let (left, weight) = leader.with(|batch| (held + batch.left(), held + batch.weight()));
        executor::here(|host| host.events_wait.set(left > 0));
        match self.pool.tuning.promotion {
            _ if event.is_none() => leader.vacate(),
            Promotion::Adaptive if leader.is_wake_worth(weight) => leader.promote(),
            Promotion::Eager if leader.has_follower() => leader.promote(),
            _ => leader.vacate(),
        }
    }
}
