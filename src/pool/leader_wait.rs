//! How a leader with an empty batch waits for the next batch.

use super::block_on::Rider;
use crate::executor::{self, Host};
use crate::leadership::Leader;
use crate::reactor::{self, Batch};
use crate::simulated;

impl Rider<'_> {
    /// Looks for events, and sleeps in the poller if there are none. Does not sleep if the root future was
    /// woken, one of its runners has tasks, or a thread with a better claim wants to lead: the batch may be
    /// empty after that.
    pub(super) fn wait_for_batch(&mut self, leader: &mut Leader<'_, Batch>) {
        let reactor = &self.pool.reactor;
        reactor::next_turn();
        self.station.stage.step();
        if self.station.is_woken() {
            leader.with(|batch| batch.look(reactor));
            return;
        }
        if leader.with(|batch| batch.look_if_cheap(reactor)) || !self.station.try_rest() {
            return;
        }
        leader.set_waits(true);
        self.idle(leader);
        leader.set_waits(false);
        executor::here(Host::rise);
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
            leader.start_clock_anew();
            if leader.with(|batch| batch.look(reactor)) {
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
        leader.start_clock_anew();
        leader.with(|batch| batch.sleep(reactor, || self.station.is_woken() || displaced() || may_leap()));
        self.station.seat.stop_polling();
        self.note_wake_up();
    }
}
