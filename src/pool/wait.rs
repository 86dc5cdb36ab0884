//! What a thread does that holds no event: it steals one, or waits, as the leader or in line.
//!
//! # Where a thread looks before it sleeps
//!
//! | where | by | if there is none |
//! |---|---|---|
//! | its own share | [`next_event`](Rider::next_event) | |
//! | leadership: due timers, then the poller | `try_lead` | if another thread leads: goes on |
//! | its own tasks, if it does not lead | `is_woken` | |
//! | the shares of other threads | [`steal`](Rider::steal), `wait_for_batch` | |
//! | the tasks of its executors, in others' queues, too | `try_enter_lines` | |
//! | its tokens | the seat | sleeps |
//!
//! A leader that finds the poller empty steals before it sleeps, so it sleeps only when all shares were
//! empty. After that only a thief fills one, with what it had in its hands when the leader looked. If the
//! thief ends before it has fired all of that, it interrupts the leader, which steals. A follower that enters
//! the line beside full shares stays awake if leadership is vacant; otherwise there is a leader, which looks
//! at the shares.
//!
//! A thread that never sleeps, because it always finds events or tasks, steals all the same: when it leads,
//! from a share that is *stuck*, which has events, and of which none was taken since that thread looked at it
//! last. So events of a thread without a core wait until others have led a few times. What remains is left to
//! the deputy, for which a share is stuck from one look to the next: it interrupts a leader that sleeps, or
//! brings a thread that leads and steals.
//!
//! Events and tasks are stolen by two mechanisms. A task belongs to one executor, and its owner adds others
//! all the time; an event belongs to the pool, and a share is filled only when it is empty, by a plain store.

use super::block_on::Rider;
use crate::executor::{self, Host};
use crate::leadership::{Follower, Leader, Waited};
use crate::reactor::{self, Batch, Event};
use crate::simulated;

impl Rider<'_> {
    /// Steals an event, and some more for later. Does not if the root future was woken, or if this thread
    /// may not lead: then others fire the events.
    pub(super) fn steal(&self, follower: &Follower<'_, Batch>) -> Option<Event> {
        if self.station.is_woken() || !follower.may_lead() {
            return None;
        }
        let event = self.share.steal()?;
        reactor::next_turn();
        executor::here(|host| host.events_wait.set(self.share.left() > 0));
        follower.share_out(self.share.left());
        Some(event)
    }

    /// Waits until the thread leads, or has something else to do. Does not wait if the root future was woken,
    /// or a runner has tasks.
    pub(super) fn wait_in_line<'l>(&mut self, follower: Follower<'l, Batch>) -> Waited<'l, Batch> {
        if self.station.is_woken() || !self.station.try_enter_lines() {
            return Waited::Awake(follower);
        }
        let turn = follower.follow(self.station.linger, || self.pool.reactor.interrupt());
        self.finish_sleep();
        turn
    }

    /// Looks for events, steals one if there are none, and sleeps in the poller if there is none to steal.
    /// Does not sleep if the root future was woken, one of its runners has tasks, or a thread with a better
    /// claim wants to lead: the batch may be empty after that. Returns the stolen event.
    pub(super) fn wait_for_batch(&mut self, leader: &mut Leader<'_, Batch>) -> Option<Event> {
        let reactor = &self.pool.reactor;
        reactor::next_turn();
        self.station.stage.step();
        let is_woken = self.station.is_woken();
        let ask = |batch: &mut Batch| {
            if is_woken { batch.ask_poller(reactor) } else { batch.ask_if_cheap(reactor) }
        };
        if leader.with(ask) {
            return None;
        }
        let stolen = self.share.steal();
        if stolen.is_none() && !is_woken && self.station.try_enter_lines() {
            self.idle(leader);
            executor::here(Host::leave_lines);
        }
        stolen
    }

    /// Waits without work: stays awake for a moment if that pays, and then sleeps in the poller until there
    /// are events, or until the thread has something else to do. Does not sleep if it has that before, or
    /// if a test clock leaps instead. Stands the deputy down before the sleep, if that pays, and notifies
    /// it after. Panics in a simulation if nothing can wake it.
    fn idle(&mut self, leader: &mut Leader<'_, Batch>) {
        let reactor = &self.pool.reactor;
        let displaced = leader.displaced();
        while leader.with(|batch| batch.stays_awake()) {
            if self.station.is_woken() || displaced() {
                leader.with(|batch| batch.interrupted(reactor));
                return;
            }
            if leader.with(|batch| batch.ask_poller(reactor)) {
                return;
            }
        }
        // A relief does not know whether any thread has something to do, so the clock must not leap for it.
        if !self.station.is_relief() && leader.with(|batch| batch.try_leap(reactor)) {
            return;
        }
        if reactor.is_simulated() && !self.station.is_woken() {
            simulated::would_sleep(|| self.station.is_woken());
        }
        if !self.station.seat.start_polling() {
            leader.with(|batch| batch.interrupted(reactor));
            return;
        }
        self.pool.deputy.stand_down(leader.with(|batch| batch.slept_lately()), || self.pool.is_quiet());
        // The clock may have been released since `try_leap`, by a thread that found no sleeping leader to
        // interrupt.
        let may_leap = || !self.station.is_relief() && reactor.clock.was_released();
        leader.with(|batch| batch.sleep(reactor, || self.station.is_woken() || displaced() || may_leap()));
        self.station.seat.stop_polling();
        self.end_sleep();
    }

    /// Ends a wait in which the thread may have slept: a new turn begins, and its runners leave the lines.
    fn finish_sleep(&self) {
        reactor::next_turn();
        executor::here(Host::leave_lines);
        self.end_sleep();
    }

    /// Notes that the thread may have slept, and notifies the deputy. The stage comes first: what the
    /// deputy knows of the time before the sleep does not hold any more.
    fn end_sleep(&self) {
        self.station.stage.step();
        self.pool.deputy.notify();
    }
}
