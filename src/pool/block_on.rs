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
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::stay::Stay;
use super::{Pool, Promotion, Station};
use crate::budget;
use crate::executor::{self, Host};
use crate::flight::Membership;
use crate::leadership::{Follower, Leader, Waited};
use crate::reactor::{self, Batch, Event, Own};
use crate::simulated;

/// How a `block_on` gets its pool.
#[derive(Debug)]
pub(crate) enum PoolSource {
    /// The pool is known.
    Given(Arc<Pool>),
    /// The function returns the pool. `block_on` calls it when the future has to wait for the first time.
    Current(fn() -> io::Result<Arc<Pool>>),
}

/// The future that a thread awaits while it runs a crew's tasks. A trait object, because it is polled rarely:
/// so the code that runs the tasks is compiled once, and inlined more than one copy for each type of future.
pub(super) type Root<'a> = Pin<&'a mut (dyn Future<Output = ()> + 'a)>;

/// Drives `future` to its end, and returns its output. Returns `None` if the deputy wants the thread to
/// leave, or if the thread was not needed for its whole linger time. Panics if the future has to wait and the
/// default instance, which is needed then, cannot be had.
///
/// The future is polled before the thread has a share or takes part in leadership, and, where the pool is not
/// known, before it joins one: a future that is ready needs none of these. What wakes the future meanwhile
/// sets a token of the station, which the loop finds before it waits.
#[inline]
pub(crate) fn drive<F: Future>(source: PoolSource, station: Arc<Station>, future: F) -> Option<F::Output> {
    let stay = Stay::begin(station);
    let (station, waker) = (stay.station(), stay.waker());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    let mut flight = Membership::new();
    let mut join = |pool| {
        let pool = stay.join(pool);
        flight.refresh(&pool.recording);
        // If this thread is in a simulation, and the pool is not its own, waits need the system's clocks.
        let clocks = (!pool.reactor.is_simulated()).then(simulated::system_clocks);
        (pool, clocks)
    };
    let joined = match source {
        PoolSource::Given(pool) => Ok(join(pool)),
        PoolSource::Current(find) => Err(find),
    };
    station.take_woken();
    budget::refill();
    let polled = future.as_mut().poll(&mut cx);
    if let Ok((pool, _)) = &joined {
        // The future may have forked: a child does not get past this.
        pool.reactor.assert_not_inherited();
    }
    if let Poll::Ready(output) = polled {
        return Some(output);
    }
    let (pool, _clocks) = joined.unwrap_or_else(|find| match find() {
        Ok(pool) => join(pool),
        Err(error) => panic!("the default instance cannot be started: {error}"),
    });
    Rider::new(pool, station, flight).wait_for(future, &mut cx)
}

/// A `block_on` in progress, as the steps of the loop see it.
pub(super) struct Rider<'a> {
    pub(super) pool: &'a Pool,
    pub(super) station: &'a Station,
    /// The events that this thread holds.
    pub(super) share: Own<'a>,
    flight: Membership,
}

impl<'a> Rider<'a> {
    fn new(pool: &'a Pool, station: &'a Station, flight: Membership) -> Self {
        let share = pool.reactor.shares.join();
        station.share.store(share.number, Ordering::Relaxed);
        Self { pool, station, share, flight }
    }

    /// The loop. Returns as [`drive`] does.
    fn wait_for<F: Future>(mut self, mut future: Pin<&mut F>, cx: &mut Context<'_>) -> Option<F::Output> {
        let mut follower = self.pool.leadership.join(self.station.seat.clone());
        loop {
            // What it holds it fires first.
            if self.station.goes.is_set() && self.share.left() == 0 {
                return None;
            }
            let event;
            (event, follower) = self.next_event(follower)?;
            if let Some(event) = event {
                self.station.stage.toggle_work();
                reactor::keep_spare(self.pool.reactor.fire(event));
                self.station.stage.toggle_work();
            }
            let is_woken = self.take_woken();
            budget::refill();
            let polled = if is_woken { future.as_mut().poll(cx) } else { Poll::Pending };
            // The future may have forked, or code that an event has woken: a child does not get past this.
            self.pool.reactor.assert_not_inherited();
            if let Poll::Ready(output) = polled {
                return Some(output);
            }
        }
    }

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
