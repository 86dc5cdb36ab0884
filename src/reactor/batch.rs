//! [`Batch`]: the half of the reactor that only the leader may use: the batch of events, the timers that are
//! due, and statistics of how events arrive.
//!
//! A leader takes all events of sources along, in its [share](super::share), and due timers one at a time.

use std::task::Waker;
use std::time::Duration;

use super::share::{Event, Own};
use super::sys::{self, EventWait};
use super::{Key, Reactor};
use crate::flight;
use crate::notice::or_abort;
use crate::spin::{Moment, Spin};
use crate::sync::Instant;
use crate::waking;

/// Number of due timers that fire in a row before sources get their turn. Asking the poller costs as much
/// as a timer or two, and some five times that on the portable path, so its cost hardly shows. Between two
/// of them a thread polls up to eight tasks, so where each wakes several, a source waits for up to 256 polls.
const TIMERS_IN_A_ROW: usize = 32;

/// How many due timers are as much work as one event of a source. A task that an event wakes makes at least
/// one system call; many tasks that a timer wakes do less. Where they do more, the deputy finds that polls
/// are long, and each is worth a wake.
const TIMERS_PER_EVENT: usize = 8;

/// The leader's half of the reactor.
#[derive(Debug)]
pub(crate) struct Batch {
    events: sys::Events,
    /// The place in `events` of the next event to take.
    next: usize,
    /// The deadlines and wakers of timers that are due. The last one fires next.
    due: Vec<(u64, Waker)>,
    /// How many more of them may fire before sources get their turn.
    in_a_row: usize,
    /// The deadline that was announced last, until the clock says that it has passed.
    deadline: u64,
    /// The clock's count of changes at that announcement.
    changes: u32,
    /// Whether the announced check gathers timers.
    gathers: bool,
    spin: Spin,
    /// How long the leader may stay awake without work.
    spin_limit: Duration,
    /// The moment without work, while the leader stays awake in it.
    idle: Option<Moment>,
}

impl Batch {
    /// Creates an empty batch. A leader may stay awake for `spin` without work.
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

    /// Returns how many events and due timers were collected and not taken yet.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.events.list.len() - self.next + self.due.len()
    }

    /// Returns how much work is left, in events of sources: so many are worth [waking a follower] for.
    ///
    /// [waking a follower]: crate::line::Line::is_wake_worth
    #[inline]
    pub(crate) fn weight(&self) -> usize {
        self.events.list.len() - self.next + self.due.len() / TIMERS_PER_EVENT
    }

    /// Takes the next event of the batch, and if that is one of a source, moves the others into the share of
    /// this thread, which is empty. Due timers come first, but after [`TIMERS_IN_A_ROW`] of them the sources
    /// have their turn, for which the poller is asked again if need be. Returns `None` when neither events
    /// nor timers are left.
    #[inline]
    pub(crate) fn next(&mut self, reactor: &Reactor, share: &Own<'_>) -> Option<Event> {
        loop {
            if self.in_a_row > 0 {
                if let Some((_, waker)) = self.due.pop() {
                    self.in_a_row -= 1;
                    reactor.timers.set_due(self.due.len());
                    return Some(Event::Timer(waker));
                }
            }
            let Some(&(key, happened)) = self.events.list.get(self.next) else {
                if self.due.is_empty() {
                    return None;
                }
                // The timers have their turn again after this.
                self.ask_poller(reactor);
                continue;
            };
            self.next += 1;
            if key < sys::RESERVED {
                if self.next < self.events.list.len() {
                    self.take_along(share);
                }
                return Some(Event::Source(Key(key), happened));
            }
            if key == sys::CLOCK {
                self.clock_rang(reactor);
            }
        }
    }

    /// Moves the next events of sources into the share: those before an event of the clock, so that timers
    /// that are due wait for no others, and no more than it has places.
    fn take_along(&mut self, share: &Own<'_>) {
        let rest = self.events.list[self.next..].iter().take(sys::BATCH);
        let events = rest.map_while(|&(key, happened)| (key < sys::RESERVED).then_some((Key(key), happened)));
        self.next += share.fill(events);
    }

    /// Forgets the announced deadline, which has passed, and collects the due timers.
    #[cold]
    fn clock_rang(&mut self, reactor: &Reactor) {
        self.events.deadline = None;
        (self.deadline, self.gathers) = (u64::MAX, false);
        // Unless earlier ones are left: these are newer, and the next check finds them, because their
        // deadline differs from the announced one.
        if self.due.is_empty() {
            reactor.timers.expire(reactor.clock.now(), &mut self.due);
        }
    }

    /// Asks the poller, without waiting, and collects the timers that are overdue, unless due timers are
    /// left in the batch. Returns whether there is an event or a timer that was not there before. No event of
    /// a source may be left: the new events replace the list.
    pub(crate) fn ask_poller(&mut self, reactor: &Reactor) -> bool {
        self.fetch(reactor, EventWait::None)
    }

    /// Does the same as [`ask_poller`](Self::ask_poller) where that costs less than it can save before a
    /// sleep: with epoll. Elsewhere returns false without asking.
    #[inline]
    pub(crate) fn ask_if_cheap(&mut self, reactor: &Reactor) -> bool {
        reactor.is_epoll && self.ask_poller(reactor)
    }

    /// Returns whether to stay awake for now, although there is nothing to do: then this has yielded to other
    /// threads, and [`ask_poller`](Self::ask_poller) has to be called again. The first call since an event, a
    /// sleep or [`interrupted`](Self::interrupted) begins the idle time, and decides whether to stay awake in
    /// it.
    pub(crate) fn stays_awake(&mut self) -> bool {
        if self.idle.is_none() {
            self.idle = self.spin.idle(self.spin_limit);
            // Only events of sources can arrive before the deadline, and timers are many.
            if let (Some(moment), true) = (&mut self.idle, self.gathers) {
                moment.cancel();
            }
        }
        self.idle.as_mut().is_some_and(Moment::stays_awake)
    }

    /// Returns for how many nanoseconds leaders slept lately; see [`Spin::slept_lately`].
    pub(crate) fn slept_lately(&self) -> u64 {
        self.spin.slept_lately
    }

    /// Asks the poller and waits until it has something, a timer is due, or [`Reactor::interrupt`] is called.
    /// `cancelled` is asked after the announcement, when other threads know that they have to interrupt; if
    /// it returns true, or if a thread has ended and left events in its share, this returns at once. If an
    /// earlier deadline was set meanwhile, this does not wait. A signal ends the wait, too, so the batch may
    /// be empty afterwards.
    pub(crate) fn sleep(&mut self, reactor: &Reactor, cancelled: impl FnOnce() -> bool) {
        // A storm of timers may have left room for all of them.
        self.due.shrink_to(sys::BATCH);
        let _announced = reactor.slumber.announce();
        if cancelled() || reactor.shares.has_unowned() {
            self.interrupted(reactor);
            return;
        }
        let wait = if reactor.timers.earliest() < self.deadline {
            // An earlier deadline was set between the last check and the announcement.
            EventWait::None
        } else {
            reactor.counters.sleeps.add(1);
            flight::sleeps();
            EventWait::Forever
        };
        self.fetch(reactor, wait);
    }

    /// If the clock is stopped and no event is there, moves it on to the next timer or simulated event,
    /// unless the clock is held. Returns whether there may be something to do: an event, a due timer, or a
    /// task that a holder of the clock has woken. Returns false, without asking, if the clock runs.
    #[inline]
    pub(crate) fn try_leap(&mut self, reactor: &Reactor) -> bool {
        if !reactor.clock.stands() {
            return false;
        }
        let next = || {
            reactor.timers.forget_the_cancelled();
            let timer = reactor.timers.instant(reactor.timers.earliest());
            let event = reactor.way.next_event(reactor.clock.now());
            timer.into_iter().chain(event).min()
        };
        if self.ask_poller(reactor) {
            return true;
        }
        let may_be_something = reactor.clock.try_leap(next);
        if may_be_something {
            self.ask_poller(reactor);
        }
        may_be_something
    }

    /// Ends the idle time: the leader turns to something else than events.
    pub(crate) fn interrupted(&mut self, reactor: &Reactor) {
        self.idle_over(reactor, false);
    }

    /// Replaces the events by those of a wait that is as long as `wait` allows. Before the wait, announces
    /// the earliest deadline, if that or the clock has changed; if that deadline has passed, does not wait,
    /// and collects the timers that are overdue. While due timers are left, does neither. Returns whether
    /// there is anything new. Aborts the process if the poller fails.
    fn fetch(&mut self, reactor: &Reactor, wait: EventWait) -> bool {
        self.in_a_row = TIMERS_IN_A_ROW;
        let left = self.due.len();
        debug_assert!(left == 0 || wait == EventWait::None, "no leader sleeps while timers are due");
        let earliest = reactor.timers.earliest();
        // While due timers are left, the clock can wait: timers that fall due meanwhile come after them.
        let news = left == 0 && (earliest != self.deadline || reactor.clock.changes() != self.changes);
        let overdue = if news { self.announce(reactor, earliest) } else { None };
        self.next = 0;
        // An overdue timer needs no event of the clock, and waits for sources no longer than that takes.
        let wait_now = if overdue.is_some() { EventWait::None } else { wait };
        or_abort(reactor.way.wait(&mut self.events, wait_now));
        if let Some(now) = overdue {
            reactor.timers.expire(now, &mut self.due);
        }
        let found = self.events.list.len() + self.due.len() - left;
        if found > 0 || wait == EventWait::Forever {
            flight::events(found);
            self.idle_over(reactor, wait == EventWait::Forever);
        }
        if found == 0 {
            reactor.counters.empty_waits.add(1);
            return false;
        }
        reactor.counters.waits.add(1);
        reactor.counters.events.add(found as u64);
        self.spin.record_events(found);
        true
    }

    /// Announces `earliest` to the clock. If that time has passed, returns the present time instead, and the
    /// last announcement remains.
    #[cold]
    fn announce(&mut self, reactor: &Reactor, earliest: u64) -> Option<Instant> {
        let changes = reactor.clock.changes();
        let now = reactor.clock.now();
        let deadline = reactor.timers.instant(earliest);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Some(now);
        }
        let (rings, now) = reactor.clock.in_real_time(deadline, now);
        or_abort(reactor.way.announce(rings, now, &mut self.events));
        (self.deadline, self.changes) = (earliest, changes);
        self.gathers = reactor.timers.gathers(earliest);
        None
    }

    /// Ends the idle time, if there is one, and counts it. `slept` says whether the leader slept at its end.
    fn idle_over(&mut self, reactor: &Reactor, slept: bool) {
        if let Some(idle) = self.idle.take() {
            let awake = self.spin.over(&idle, slept);
            reactor.counters.spun_nanos.add(awake.as_nanos() as u64);
        }
    }
}

impl Drop for Batch {
    /// Fires the due timers that the last leader left, because no other thread can. ([`Reactor::close`] fires
    /// the sources left in the batch, as it fires all sources.)
    fn drop(&mut self) {
        self.due.drain(..).rev().for_each(|(_, waker)| waking::wake(waker));
    }
}

// Not for miri: its clock runs with its steps, and it reports tasks left in an executor that is not run as
// leaks.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests;
