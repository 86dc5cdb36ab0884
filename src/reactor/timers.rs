//! Timers: a [`Wheel`] under a lock, and beside it the earliest deadline, which can be read without the lock.
//!
//! The published deadline is never late, but may be early: cancelling the earliest timer leaves it unchanged,
//! and the leader finds out when it checks. The early deadline costs one check where the alternative costs a
//! search in each cancellation. Only an earlier deadline interrupts the leader.
//!
//! # Storms
//!
//! Announcing a deadline to the kernel and being woken for it costs more than a timer does. So timers that
//! are due one after the other are gathered: after some have fired, the leader checks again a *pause* later,
//! and takes all timers that are due by then, or sooner, if a timer that is due has no more *slack*: a
//! sixteenth of its delay, within limits. This module decides that, so `earliest` is the time of the leader's
//! check, and not that of the timer; and a deadline before that check interrupts no thread.
//!
//! - No timer is early: a check finds only due timers.
//! - No timer is late by more than its slack: [`Timers::check_for`] is never after its end.
//! - A timer that was due when timers fired last does not wait; and the first timer after a pause without any
//!   is looked for at its deadline.

use std::cmp::Reverse;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::Reactor;
use super::here::here;
use super::wheel::Wheel;
use crate::sync::{self, AtomicU32, AtomicU64, AtomicUsize, Instant, Mutex, Ordering};
use crate::waking;

/// The deadline when no timer is armed.
const NEVER: u64 = u64::MAX;

/// The slack of a timer that is due soon, in nanoseconds: about what it takes to wake a thread.
const LEAST_SLACK: u32 = 50_000;

#[derive(Debug)]
pub(super) struct Timers {
    /// The moment from which deadlines are counted, in nanoseconds.
    origin: Instant,
    /// The time of the leader's next check, published for other threads; [`NEVER`] if no timer is armed.
    earliest: AtomicU64,
    /// The time from a check that fired timers to the end of the pause, and the most slack of a timer, in
    /// nanoseconds.
    slack: AtomicU32,
    /// The time of that check, [`NEVER`] before the first; and the end of the pause. The leader changes them
    /// under the lock, so they are exact for the leader and under the lock.
    fired: AtomicU64,
    gathered: AtomicU64,
    /// Timers that are due and wait in the batch; written by the leader.
    due: AtomicUsize,
    /// `None` once the reactor is closed. While there is a wheel, its timers will be woken.
    pub(super) wheel: Mutex<Option<Wheel<Waker>>>,
}

impl Timers {
    /// Creates timers of which none is armed, and which have this much slack at most.
    pub(super) fn new(slack: Duration) -> Self {
        Self {
            origin: Instant::now(),
            earliest: AtomicU64::new(NEVER),
            slack: AtomicU32::new(u32::try_from(slack.as_nanos()).unwrap_or(u32::MAX)),
            fired: AtomicU64::new(NEVER),
            gathered: AtomicU64::new(0),
            due: AtomicUsize::new(0),
            wheel: Mutex::new(Some(Wheel::new())),
        }
    }

    pub(super) fn armed(&self) -> usize {
        sync::lock(&self.wheel).as_ref().map_or(0, |wheel| wheel.armed)
    }

    /// Returns when the leader should check next, as a number for comparison and for [`Timers::instant`].
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.earliest.load(Ordering::Relaxed)
    }

    /// Returns when the leader checks for a timer that is due at `at`, and whose slack ends at `latest`.
    #[inline]
    fn check_for(&self, at: u64, latest: u64) -> u64 {
        let waits = at > self.fired.load(Ordering::Relaxed);
        if waits { at.max(self.gathered.load(Ordering::Relaxed).min(latest)) } else { at }
    }

    /// Returns whether a check at that time gathers timers.
    #[inline]
    pub(super) fn gathers(&self, check: u64) -> bool {
        check == self.gathered.load(Ordering::Relaxed)
    }

    /// Returns the moment that a number stands for; none for [`NEVER`].
    pub(super) fn instant(&self, at: u64) -> Option<Instant> {
        if at == NEVER { None } else { self.origin.checked_add(Duration::from_nanos(at)) }
    }

    /// Records how many timers of the batch are left.
    #[inline]
    pub(super) fn set_due(&self, left: usize) {
        self.due.store(left, Ordering::Relaxed);
    }

    /// Returns whether a timer is armed, or due and not taken yet. Takes the lock only if one is likely.
    pub(super) fn any(&self) -> bool {
        self.due.load(Ordering::Relaxed) > 0 || self.earliest() != NEVER && self.armed() > 0
    }

    /// Returns the number that stands for a moment: zero for one before `origin`, and always less than
    /// [`NEVER`].
    #[inline]
    pub(super) fn nanos(&self, at: Instant) -> u64 {
        let ahead = at.saturating_duration_since(self.origin);
        let nanos = ahead.as_secs().saturating_mul(1_000_000_000);
        // 584 years from now is as good as the end of time.
        nanos.saturating_add(ahead.subsec_nanos().into()).min(NEVER - 1)
    }

    /// Runs `change` on the wheel with `at` and the slack for this delay, and publishes the check for `at`,
    /// if that is the earliest. Returns whether it is. Returns `None` if the reactor is closed.
    #[inline]
    fn change<R>(
        &self,
        at: Instant,
        delay: Duration,
        change: impl FnOnce(&mut Wheel<Waker>, (u64, u32)) -> R,
    ) -> Option<(R, bool)> {
        let at = self.nanos(at);
        let mut locked = sync::lock(&self.wheel);
        let wheel = locked.as_mut()?;
        let slack = if delay.as_secs() > 0 { u32::MAX } else { delay.subsec_nanos() / 16 };
        let slack = slack.max(LEAST_SLACK).min(self.slack.load(Ordering::Relaxed));
        let check = self.check_for(at, at.saturating_add(slack.into()));
        let is_earliest = check < self.earliest.load(Ordering::Relaxed);
        if is_earliest {
            self.earliest.store(check, Ordering::Relaxed);
        }
        Some((change(wheel, (at, slack)), is_earliest))
    }

    /// Ends gathering, and makes the published deadline exact: the next check is at the next deadline.
    #[cfg(feature = "test-clock")]
    pub(super) fn gather_no_more(&self) {
        self.slack.store(0, Ordering::Relaxed);
        self.gathered.store(0, Ordering::Relaxed);
        self.forget_the_cancelled();
    }

    /// Makes the published deadline exact again after cancellations.
    pub(super) fn forget_the_cancelled(&self) {
        if let Some(wheel) = &*sync::lock(&self.wheel) {
            self.publish(wheel);
        }
    }

    /// Publishes the earliest deadline of the wheel, which is locked.
    #[inline]
    fn publish(&self, wheel: &Wheel<Waker>) {
        let check = wheel.next_check().map_or(NEVER, |(at, latest)| self.check_for(at, latest));
        self.earliest.store(check, Ordering::Relaxed);
    }

    /// Collects the wakers of all timers that are due `now` in `due`, which must be empty; the timer that
    /// was due first is the last. If timers were due, begins a pause, unless there is one. Then publishes
    /// when to check next. Does nothing if no timer is armed.
    pub(super) fn expire(&self, now: Instant, due: &mut Vec<(u64, Waker)>) {
        if self.earliest() == NEVER {
            return;
        }
        let now = self.nanos(now);
        let mut locked = sync::lock(&self.wheel);
        let Some(wheel) = &mut *locked else { return };
        wheel.advance(now, |at, waker| due.push((at, waker)));
        // A check within the pause leaves the announcement for its end as it is.
        if !due.is_empty() && self.gathered.load(Ordering::Relaxed) <= now {
            self.fired.store(now, Ordering::Relaxed);
            let end = now.saturating_add(self.slack.load(Ordering::Relaxed).into());
            self.gathered.store(end.min(NEVER - 1), Ordering::Relaxed);
        }
        self.publish(wheel);
        drop(locked);
        self.set_due(due.len());
        // Stable: of equal deadlines, the one that was armed first is and stays the last.
        due.sort_by_key(|(at, _)| Reverse(*at));
    }

    /// Ends the timers, because no thread will lead here any more: wakes all waiting tasks, which arm their
    /// timers elsewhere.
    pub(super) fn close(&self) {
        let wheel = sync::lock(&self.wheel).take();
        self.earliest.store(NEVER, Ordering::Relaxed);
        if let Some(mut wheel) = wheel {
            wheel.entries.iter_mut().filter_map(|entry| entry.value.take()).for_each(waking::wake);
        }
    }
}

/// A timer that is armed, or has fired. Dropping it cancels the timer, except in the child of a fork.
#[derive(Debug)]
pub(crate) struct Alarm {
    reactor: Arc<Reactor>,
    id: u32,
    /// The [`identity`] of its waker.
    waker: (usize, usize),
}

impl Alarm {
    /// Arms a timer. Interrupts the leader if the deadline is the earliest, and asks for one in that case, or
    /// if this thread will not lead here by itself. If no thread can be found to lead, the timer fires once
    /// one comes. Returns `None` if the reactor is closed.
    pub(crate) fn arm(reactor: Arc<Reactor>, at: Instant, delay: Duration, waker: &Waker) -> Option<Self> {
        let (waker, copy) = (identity(waker), copy(waker));
        let (id, is_earliest) = reactor.timers.change(at, delay, |wheel, at| wheel.insert(at, copy))?;
        reactor.start_leader_for_timer(is_earliest);
        Some(Self { reactor, id, waker })
    }

    /// Returns whether it wakes the task of this waker, or has woken it. If not, it has another waker, or its
    /// reactor was closed, which woke its task: then the task has to arm another timer.
    #[inline]
    pub(crate) fn is_for(&self, waker: &Waker) -> bool {
        // Relaxed suffices: the wake makes it visible.
        self.waker == identity(waker) && !self.reactor.closed.is_set()
    }

    /// Sets another deadline, with the least slack. Returns false if the timer has fired, or its reactor was
    /// closed.
    pub(crate) fn set(&self, at: Instant) -> bool {
        self.change(at, Duration::ZERO, None)
    }

    /// Sets another deadline, and this task as the one to wake; also if the timer has fired. Returns false if
    /// its reactor was closed.
    pub(crate) fn rearm(&mut self, at: Instant, delay: Duration, waker: &Waker) -> bool {
        if self.is_for(waker) && self.change(at, delay, None) {
            return true;
        }
        // The copy comes first: it may panic.
        let copy = copy(waker);
        self.waker = identity(waker);
        self.change(at, delay, Some(copy))
    }

    /// Sets another deadline, and another waker, if one is given.
    fn change(&self, at: Instant, delay: Duration, waker: Option<Waker>) -> bool {
        let rearm = |wheel: &mut Wheel<_>, at| wheel.rearm(self.id, at, waker);
        let Some((old, is_earliest)) = self.reactor.timers.change(at, delay, rearm) else { return false };
        self.reactor.start_leader_for_timer(is_earliest);
        old.map(waking::discard).is_ok()
    }
}

/// Identifies a waker while a copy of it keeps its data alive: then equal addresses mean the same waker.
fn identity(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

/// Copies a waker, before the lock: this is user code (LF3).
fn copy(waker: &Waker) -> Waker {
    here(|here| here.copy(waker))
}

impl Drop for Alarm {
    /// Cancels the timer without waking its task; the published deadline stays. Does nothing in the child of
    /// a fork.
    fn drop(&mut self) {
        if self.reactor.is_inherited() {
            return;
        }
        let waker = sync::lock(&self.reactor.timers.wheel).as_mut().and_then(|wheel| wheel.remove(self.id));
        // Most timers are timeouts, so a task that cancels one arms another soon.
        waking::discard(waker.and_then(|waker| here(|here| here.keep(waker))));
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;
    use crate::waking::WakeCounter;

    impl Timers {
        /// Arms a timer this long after the origin, with the least slack.
        fn insert(&self, nanos: u64, waiter: &Arc<WakeCounter>) -> (u32, bool) {
            let waker = waiter.clone().into();
            let at = self.origin + Duration::from_nanos(nanos);
            self.change(at, Duration::ZERO, |wheel, at| wheel.insert(at, waker)).unwrap()
        }

        /// Arms timers so many microseconds after the origin, with the slack for that delay. Returns whether
        /// each is the earliest.
        fn arm<const N: usize>(&self, micros: [u64; N]) -> [bool; N] {
            let insert = |wheel: &mut Wheel<_>, at| wheel.insert(at, Waker::noop().clone());
            let after = micros.map(Duration::from_micros);
            after.map(|after| self.change(self.origin + after, after, insert).unwrap().1)
        }

        /// Checks this many microseconds after the origin. Returns the number of due timers, and after how
        /// many microseconds to check next.
        fn check(&self, micros: u64) -> (usize, u64) {
            let mut due = Vec::new();
            self.expire(self.origin + Duration::from_micros(micros), &mut due);
            (due.len(), self.earliest().div_ceil(1_000))
        }
    }

    #[test]
    fn only_the_earliest_deadline_is_reported() {
        let (timers, waiter) = (Timers::new(Duration::ZERO), Arc::default());
        let insert = |nanos| timers.insert(nanos, &waiter).1;
        let are_earliest = [5_000, 7_000, 5_000, 4_999, 4_999].map(insert);
        assert_eq!(are_earliest, [true, false, false, true, false]);
        assert_eq!((timers.earliest(), timers.armed()), (4_999, 5));
        assert_eq!(timers.instant(4_000), Some(timers.origin + Duration::from_nanos(4_000)));
        assert_eq!(timers.instant(NEVER), None);
    }

    #[test]
    fn the_end_of_time_is_a_deadline_that_never_comes() {
        let timers = Timers::new(Duration::ZERO);
        let far = |seconds, nanos| timers.nanos(timers.origin + Duration::new(seconds, nanos));
        assert_eq!(far(3, 7), 3_000_000_007);
        assert_eq!(far(u64::MAX / 1_000_000_000, 709_551_613), NEVER - 2);
        assert_eq!(far(u64::MAX / 1_000_000_000, 709_551_614), NEVER - 1);
        assert_eq!(far(u64::MAX / 1_000_000_000, 709_551_615), NEVER - 1);
        assert_eq!(far(u64::MAX / 1_000_000_000, 709_551_616), NEVER - 1);
        assert_eq!(far(u64::MAX / 100_000_000, 0), NEVER - 1);
    }

    #[test]
    fn what_is_due_is_handed_out_from_the_last_to_the_first_and_counts_until_it_is_taken() {
        let (timers, waiter, hour) = (Timers::new(Duration::ZERO), Arc::default(), 3_600_000_000_000);
        let mut due = Vec::new();
        timers.expire(Instant::now(), &mut due);
        assert!(due.is_empty() && !timers.any());
        timers.insert(hour, &waiter);
        timers.insert(2, &waiter);
        timers.insert(1, &waiter);
        while timers.nanos(Instant::now()) < 2 {}
        timers.expire(Instant::now(), &mut due);
        assert!(due.iter().map(|(at, _)| *at).eq([2, 1]));
        assert_eq!((timers.earliest(), timers.armed()), (hour, 1));

        timers.close();
        assert!(timers.armed() == 0 && timers.any());
        timers.set_due(0);
        assert!(!timers.any());
        assert_eq!(waiter.times(), 1);
        assert!(timers.change(Instant::now(), Duration::ZERO, |_, _| ()).is_none());
    }

    #[test]
    fn the_earliest_deadline_may_be_of_a_timer_that_is_gone() {
        let (timers, waiter) = (Timers::new(Duration::ZERO), Arc::default());
        assert!(!timers.any());
        let (id, _) = timers.insert(5, &waiter);
        assert!(timers.any());
        sync::lock(&timers.wheel).as_mut().unwrap().remove(id);
        assert_eq!((timers.earliest(), timers.armed()), (5, 0));
        assert!(!timers.any());
        timers.expire(Instant::now(), &mut Vec::new());
        assert_eq!(timers.earliest(), NEVER);
    }

    const MOST: Duration = Duration::from_millis(1);

    /// Fails if `check_for` does not wait for the end of the pause, and if an arming before it is told.
    #[test]
    fn timers_that_are_due_soon_after_others_are_gathered() {
        let timers = Timers::new(MOST);
        assert_eq!(timers.arm([38_000, 38_100, 38_999, 39_400]), [true, false, false, false]);
        assert_eq!(timers.check(37_999), (0, 38_000));
        assert_eq!(timers.check(38_000), (1, 39_000));
        assert_eq!(timers.arm([38_050]), [false], "the next check is soon enough");
        assert!(timers.gathers(timers.earliest()));
        assert_eq!(timers.check(39_000), (3, 40_000));
        // Nothing is due at the end of this pause, so there is no other one.
        assert_eq!(timers.check(40_000), (1, NEVER.div_ceil(1_000)));
        timers.arm([41_500]);
        assert_eq!(timers.check(40_900), (0, 41_500));
        assert!(!timers.gathers(timers.earliest()));
    }

    #[test]
    fn a_timer_waits_for_others_for_a_sixteenth_of_its_delay_at_most() {
        for (at, latest) in [(100, 150), (790, 840), (1_600, 1_700), (9_600, 10_200), (17_600, 18_700)] {
            let timers = Timers::new(MOST);
            // Another one fires just before, and begins a pause of a millisecond.
            timers.arm([at - 1, at, at + 3_000]);
            assert_eq!(timers.check(at - 1), (1, latest.min(at - 1 + 1_000)));
        }
    }

    #[test]
    fn a_timer_that_was_due_when_others_fired_does_not_wait() {
        let timers = Timers::new(MOST);
        timers.arm([38_000, 38_500]);
        assert_eq!(timers.check(38_010), (1, 39_010));
        assert_eq!(timers.arm([38_005]), [true]);
        assert_eq!(timers.check(38_020), (1, 39_010), "the announcement remains");
    }

    #[test]
    fn without_slack_each_timer_is_on_time() {
        let timers = Timers::new(Duration::ZERO);
        timers.arm([38_000, 38_001, 38_002]);
        assert_eq!([38_000, 38_001].map(|at| timers.check(at)), [(1, 38_001), (1, 38_002)]);
        assert!(!timers.gathers(timers.earliest()));
    }

    #[cfg(feature = "test-clock")]
    #[test]
    fn timers_are_on_time_from_the_moment_when_the_clock_stands() {
        let timers = Timers::new(MOST);
        timers.arm([38_000, 38_100]);
        assert_eq!(timers.check(38_000), (1, 39_000));
        timers.gather_no_more();
        assert_eq!(timers.earliest(), 38_100_000);
        assert_eq!(timers.arm([38_050]), [true]);
        assert_eq!(timers.check(38_050), (1, 38_100));
    }

    /// No check is before the earliest deadline or later than the slack of a timer, and there is about one
    /// per millisecond.
    #[test]
    fn a_storm_needs_a_check_per_millisecond() {
        const TIMERS: u64 = 10_000;
        let timers = Timers::new(MOST);
        let at = |number| 100_000 + 10 * number;
        (0..TIMERS).for_each(|number| _ = timers.arm([at(number * 171 % TIMERS)]));
        let (mut fired, mut checks, mut moves) = (0, 0, 0);
        while fired < TIMERS {
            let now = timers.earliest().div_ceil(1_000);
            assert!(now <= at(fired) + 1_000, "{now} for {}", at(fired));
            match timers.check(now).0 {
                0 => moves += 1,
                due => (fired, checks) = (fired + due as u64, checks + 1),
            }
        }
        // The ends of the lowest level count apart, of which there are four in 17 ms.
        assert!(checks <= 100 + 25 && moves <= 25, "{checks}, {moves}");
    }

    #[test]
    fn an_alarm_is_armed_until_it_fires_is_dropped_or_its_reactor_is_closed() {
        let (reactor, _watch) =
            Reactor::new(crate::reactor::WayChoice::Best, Duration::ZERO, Duration::ZERO).unwrap();
        let (reactor, waiter) = (Arc::new(reactor), Arc::<WakeCounter>::default());
        let (waker, past) = (Waker::from(waiter.clone()), reactor.timers.origin);
        let later = past + Duration::from_secs(3_600);
        let arm = |at| Alarm::arm(reactor.clone(), at, Duration::ZERO, &waker);
        let dropped = arm(later).unwrap();
        assert_eq!(reactor.timers(), 1);
        drop(dropped);
        assert_eq!((reactor.timers(), Arc::strong_count(&waiter)), (0, 2));

        let mut alarm = arm(later).unwrap();
        assert!(alarm.set(past) && alarm.is_for(&waker) && !alarm.is_for(Waker::noop()));
        let mut due = Vec::new();
        reactor.timers.expire(Instant::now(), &mut due);
        assert_eq!((due.len(), reactor.timers()), (1, 0));
        assert!(!alarm.set(later));
        assert!(alarm.rearm(later, Duration::ZERO, &waker));
        assert_eq!(reactor.timers(), 1);

        reactor.close();
        assert_eq!(waiter.times(), 1);
        assert!(!alarm.is_for(&waker) && !alarm.rearm(later, Duration::ZERO, &waker) && arm(later).is_none());
    }
}
