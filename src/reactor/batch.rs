//! [`Batch`]: the half of the reactor that only the leader may use. The batch of events, what is due, and the
//! memory of how events come.
//!
//! The batch belongs to the handle set, not to the thread that fetched it: whoever leads takes the next event of
//! it, so nothing waits behind a slow handler (R7).

use std::io;
use std::task::Waker;
use std::time::Duration;

use super::readiness::Happened;
use super::sys::{self, Patience};
use super::wheel::Due;
use super::{Key, Reactor};
use crate::spin::{Moment, Spin};
use crate::sync::Instant;
use crate::waking;

/// So many timers that are due together are handed out before sources get their turn. A look at the poller costs what a
/// timer or two do, and some five times that on the portable path: it hardly shows. And a source waits for a few dozen
/// tasks, however many timers are due.
const TIMERS_IN_A_ROW: usize = 32;

/// Something that happened, to be fired by the thread that took it.
#[derive(Debug)]
pub(crate) enum Event {
    /// A source reported.
    Source(Key, Happened),
    /// A timer is due.
    Timer(Waker),
}

/// The leader's half of the reactor.
#[derive(Debug)]
pub(crate) struct Batch {
    events: sys::Events,
    next: usize,
    /// Timers that are due; the last one fires next.
    due: Vec<Due<Waker>>,
    /// So many of them may fire before sources get their turn.
    in_a_row: usize,
    /// What was announced last, until the clock says that it has passed.
    deadline: u64,
    /// How often the clock was set until then.
    changes: u32,
    /// That is a look which gathers timers.
    gathers: bool,
    spin: Spin,
    /// How long it may stay awake without work.
    spin_limit: Duration,
    idle: Option<Moment>,
}

impl Batch {
    pub(super) fn new(spin: Duration) -> Self {
        Self {
            events: sys::Events::new(),
            next: 0,
            due: Vec::new(),
            in_a_row: TIMERS_IN_A_ROW,
            deadline: u64::MAX,
            changes: 0,
            gathers: false,
            spin: Spin::new(),
            spin_limit: spin,
            idle: None,
        }
    }

    /// Events that were fetched and not taken yet.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.events.list.len() - self.next + self.due.len()
    }

    /// The next event of the batch. `None` when nothing is left, timers included.
    #[inline]
    pub(crate) fn next(&mut self, reactor: &Reactor) -> Option<Event> {
        loop {
            if self.in_a_row > 0 {
                if let Some(timer) = self.due.pop() {
                    self.in_a_row -= 1;
                    reactor.timers.set_due(self.due.len());
                    return Some(Event::Timer(timer.value));
                }
            }
            let Some(&(key, happened)) = self.events.list.get(self.next) else {
                if self.due.is_empty() {
                    return None;
                }
                self.glance(reactor);
                continue;
            };
            self.next += 1;
            if key < sys::RESERVED {
                return Some(Event::Source(Key(key), happened));
            }
            if key == sys::CLOCK {
                self.clock_rang(reactor);
            }
        }
    }

    /// What was announced has passed.
    #[cold]
    fn clock_rang(&mut self, reactor: &Reactor) {
        self.events.deadline = None;
        (self.deadline, self.gathers) = (u64::MAX, false);
        self.expire(reactor, reactor.clock.now());
    }

    /// Sees what sources have to say while timers wait for their turn. It is with the timers again after that.
    #[cold]
    fn glance(&mut self, reactor: &Reactor) {
        // An error is met again by the look that follows the last timer.
        let _ = self.fetch(reactor, Patience::None);
    }

    /// Asks the poller, without waiting. True if it had something.
    pub(crate) fn look(&mut self, reactor: &Reactor) -> io::Result<bool> {
        self.fetch(reactor, Patience::None)
    }

    /// The same before a sleep, where a look costs less than it can save.
    #[inline]
    pub(crate) fn look_if_cheap(&mut self, reactor: &Reactor) -> io::Result<bool> {
        if reactor.sys.is_epoll { self.look(reactor) } else { Ok(false) }
    }

    /// Whether to stay awake for now, although there is nothing to do: call [`look`](Self::look) again.
    pub(crate) fn stays_awake(&mut self) -> bool {
        if self.idle.is_none() {
            self.idle = self.spin.idle(self.spin_limit);
            // It is known that nothing is to be had before the deadline but what sources bring, and that timers are many.
            self.idle.iter_mut().filter(|_| self.gathers).for_each(Moment::sleeps);
        }
        self.idle.as_mut().is_some_and(Moment::stays_awake)
    }

    /// For how many nanoseconds leaders slept lately; see [`Spin::slept_lately`].
    pub(crate) fn slept_lately(&self) -> u64 {
        self.spin.slept_lately()
    }

    /// Asks the poller and waits until it has something, a timer is due, or [`Reactor::interrupt`] is called.
    /// `cancelled` is asked once the others know that they have to interrupt.
    pub(crate) fn sleep(&mut self, reactor: &Reactor, cancelled: impl FnOnce() -> bool) -> io::Result<()> {
        let _announced = reactor.slumber.announce();
        if cancelled() {
            self.interrupted(reactor);
            return Ok(());
        }
        let patience = if reactor.timers.earliest() < self.deadline {
            // An earlier deadline came between the last look and the announcement.
            Patience::None
        } else {
            reactor.counters.sleeps.add(1);
            Patience::Forever
        };
        self.fetch(reactor, patience).map(|_| ())
    }

    /// Where the clock stands, and nothing has happened, goes on to the next timer, if there is one. True if there is something.
    #[inline]
    pub(crate) fn leaps(&mut self, reactor: &Reactor) -> io::Result<bool> {
        if !reactor.clock.stands() {
            return Ok(false);
        }
        let next = || {
            reactor.timers.forget_the_cancelled();
            reactor.timers.instant(reactor.timers.earliest())
        };
        if self.look(reactor)? {
            return Ok(true);
        }
        let may_be_something = reactor.clock.leaps(next);
        if may_be_something {
            self.look(reactor)?;
        }
        Ok(may_be_something)
    }

    /// The leader turns to something else than events.
    pub(crate) fn interrupted(&mut self, reactor: &Reactor) {
        self.idle_over(reactor, false);
    }

    fn fetch(&mut self, reactor: &Reactor, patience: Patience) -> io::Result<bool> {
        self.in_a_row = TIMERS_IN_A_ROW;
        let left = self.due.len();
        debug_assert!(left == 0 || patience == Patience::None, "nobody sleeps while timers are due");
        let earliest = reactor.timers.earliest();
        // The clock has time while timers are left: what falls due meanwhile comes after them.
        let news = left == 0 && (earliest != self.deadline || reactor.clock.changes() != self.changes);
        let overdue = if news { self.announce(reactor, earliest)? } else { None };
        self.next = 0;
        // What is overdue waits for no event of the clock's, and for sources no longer than a look takes.
        reactor.sys.way.wait(&mut self.events, if overdue.is_some() { Patience::None } else { patience })?;
        if let Some(now) = overdue {
            self.expire(reactor, now);
        }
        let found = self.events.list.len() + self.due.len() - left;
        if found > 0 || patience == Patience::Forever {
            self.idle_over(reactor, patience == Patience::Forever);
        }
        if found == 0 {
            reactor.counters.empty_waits.add(1);
            return Ok(false);
        }
        reactor.counters.waits.add(1);
        reactor.counters.events.add(found as u64);
        self.spin.saw(found);
        Ok(true)
    }

    /// Has the clock ring for timers at `earliest`. If that has passed, returns the time instead: what was announced before
    /// stays so.
    #[cold]
    fn announce(&mut self, reactor: &Reactor, earliest: u64) -> io::Result<Option<Instant>> {
        let changes = reactor.clock.changes();
        let now = reactor.clock.now();
        let deadline = reactor.timers.instant(earliest);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Ok(Some(now));
        }
        let (rings, now) = reactor.clock.in_real_time(deadline, now);
        reactor.sys.way.announce(rings, now, &mut self.events)?;
        (self.deadline, self.changes) = (earliest, changes);
        self.gathers = reactor.timers.gathers(earliest);
        Ok(None)
    }

    fn idle_over(&mut self, reactor: &Reactor, slept: bool) {
        if let Some(idle) = self.idle.take() {
            let awake = self.spin.over(&idle, slept);
            reactor.counters.spun_nanos.add(awake.as_nanos() as u64);
        }
    }

    /// Collects what is due, unless some that was due before is left: later than that it is anyway, and the next look, for
    /// which the deadline is news again, finds it.
    #[cold]
    fn expire(&mut self, reactor: &Reactor, now: Instant) {
        if !self.due.is_empty() {
            return;
        }
        reactor.timers.expire(now, &mut self.due);
    }
}

/// What is due when the last leader has gone is nobody else's to fire. (Sources that are left in the batch are told by
/// [`Reactor::close`], as all are.)
impl Drop for Batch {
    fn drop(&mut self) {
        self.due.drain(..).rev().for_each(|timer| waking::wake(timer.value));
    }
}

// Not for miri: its clock runs with its steps, and what is left in an executor that nobody runs is a leak to it.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
