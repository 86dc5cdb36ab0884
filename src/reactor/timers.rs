//! Timers: a [`Wheel`] under a lock, and the earliest deadline beside it for those who only want to know that.
//!
//! The earliest deadline that others see is never late, but may be early: cancelling the earliest timer leaves it
//! alone, and the leader finds out when it looks. That costs one look where the alternative costs a search in each
//! cancellation (N5: only an earlier deadline interrupts the leader).
//!
//! # Storms
//!
//! To announce a deadline to the kernel and to be woken for it costs more than a timer does. So when timers are due one
//! after the other they are gathered: after some have fired, the leader looks again no sooner than a *slack* later, and
//! takes all that is due by then. That is decided here, so `earliest` is when the leader looks, and not when the timer is
//! due; and a deadline that is before that look interrupts nobody.
//!
//! - Nothing is early: a look finds only what is due.
//! - Nothing is late by more than the slack: what was due at the last look fired in it, so what did not is due later than
//!   that, and the next look is a slack after the last.
//! - Nobody waits for what was due when timers fired last; and the first timer after a slack without any is looked for at
//!   its deadline.

use std::cmp::Reverse;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::Reactor;
use super::wheel::{Due, Wheel};
use crate::frame;
use crate::sync::{self, AtomicBool, AtomicU64, AtomicUsize, Instant, Mutex, Ordering};
use crate::waking;

/// No timer is armed.
const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Timers {
    origin: Instant,
    earliest: AtomicU64,
    /// How long after a look that fired timers the next one is, at least.
    slack: AtomicU64,
    /// The time of that look, [`NEVER`] before the first; and that of the next. Changed under the lock by the leader, so exact
    /// for who has either.
    fired: AtomicU64,
    gathered: AtomicU64,
    /// Timers that are due and wait in the batch; written by the leader.
    due: AtomicUsize,
    /// Nobody watches over timers; changed under the lock.
    unwatched: AtomicBool,
    /// `None` once the reactor is closed: whoever has the lock and sees a wheel knows that its timers will be woken.
    wheel: Mutex<Option<Wheel<Waker>>>,
}

impl Timers {
    pub(super) fn new(slack: Duration) -> Self {
        Self {
            origin: Instant::now(),
            earliest: AtomicU64::new(NEVER),
            slack: AtomicU64::new(slack.as_nanos().min(u128::from(NEVER)) as u64),
            fired: AtomicU64::new(NEVER),
            gathered: AtomicU64::new(0),
            due: AtomicUsize::new(0),
            unwatched: AtomicBool::new(true),
            wheel: Mutex::new(Some(Wheel::new())),
        }
    }

    pub(super) fn armed(&self) -> usize {
        sync::lock(&self.wheel).as_ref().map_or(0, Wheel::armed)
    }

    /// When the leader should look next, as a number that only serves for comparison and [`Timers::instant`].
    #[inline]
    pub(super) fn earliest(&self) -> u64 {
        self.earliest.load(Ordering::Relaxed)
    }

    /// When the leader looks for what is due at `at`.
    #[inline]
    fn look_for(&self, at: u64) -> u64 {
        let waits = at > self.fired.load(Ordering::Relaxed);
        if waits { at.max(self.gathered.load(Ordering::Relaxed)) } else { at }
    }

    /// Whether a look at that time is one that gathers.
    #[inline]
    pub(super) fn gathers(&self, look: u64) -> bool {
        look == self.gathered.load(Ordering::Relaxed)
    }

    pub(super) fn instant(&self, at: u64) -> Option<Instant> {
        if at == NEVER { None } else { self.origin.checked_add(Duration::from_nanos(at)) }
    }

    /// Says how many timers of the batch are left.
    #[inline]
    pub(super) fn set_due(&self, left: usize) {
        self.due.store(left, Ordering::Relaxed);
    }

    /// Whether a timer is armed, or due and not taken yet. Takes the lock only where one is likely.
    pub(super) fn any(&self) -> bool {
        self.due.load(Ordering::Relaxed) > 0 || self.earliest() != NEVER && self.armed() > 0
    }

    #[inline]
    pub(super) fn nanos(&self, at: Instant) -> u64 {
        let ahead = at.saturating_duration_since(self.origin);
        // 584 years from now is as good as the end of time.
        ahead.as_nanos().min(u128::from(NEVER - 1)) as u64
    }

    /// Runs `change` on the wheel with `at`. `None` if there is no wheel any more.
    #[inline]
    fn change<R>(
        &self,
        at: Instant,
        change: impl FnOnce(&mut Wheel<Waker>, u64) -> R,
    ) -> Option<(R, Changed)> {
        let at = self.nanos(at);
        let mut locked = sync::lock(&self.wheel);
        let wheel = locked.as_mut()?;
        let result = change(wheel, at);
        let mut changed = Changed::Nothing;
        let look = self.look_for(at);
        if look < self.earliest.load(Ordering::Relaxed) {
            self.earliest.store(look, Ordering::Relaxed);
            changed = Changed::Earlier;
        }
        if self.unwatched.load(Ordering::Relaxed) {
            self.unwatched.store(false, Ordering::Relaxed);
            changed = Changed::First;
        }
        Some((result, changed))
    }

    /// The next look is at the next deadline.
    #[cfg(feature = "test-clock")]
    pub(super) fn gather_no_more(&self) {
        self.slack.store(0, Ordering::Relaxed);
        self.gathered.store(0, Ordering::Relaxed);
        self.forget_the_cancelled();
    }

    /// What others see is exact again.
    pub(super) fn forget_the_cancelled(&self) {
        if let Some(wheel) = &*sync::lock(&self.wheel) {
            self.shows(wheel);
        }
    }

    /// The earliest deadline that others see is what the wheel, which is locked, says.
    #[inline]
    fn shows(&self, wheel: &Wheel<Waker>) {
        self.earliest.store(wheel.next_look().map_or(NEVER, |at| self.look_for(at)), Ordering::Relaxed);
    }

    /// Nobody watches over timers any more: whoever arms the next one is told.
    pub(super) fn start_over(&self) {
        let _wheel = sync::lock(&self.wheel);
        self.unwatched.store(true, Ordering::Relaxed);
    }

    /// Collects the wakers of all timers that are due `now`; the one that was due first is the last.
    pub(super) fn expire(&self, now: Instant, due: &mut Vec<Due<Waker>>) {
        if self.earliest() == NEVER {
            return;
        }
        let now = self.nanos(now);
        let mut locked = sync::lock(&self.wheel);
        let Some(wheel) = &mut *locked else { return };
        wheel.advance(now, |timer| due.push(timer));
        // Within a slack there is no other one, so what is announced for its end stays so.
        if !due.is_empty() && self.gathered.load(Ordering::Relaxed) <= now {
            self.fired.store(now, Ordering::Relaxed);
            self.gathered.store(
                now.saturating_add(self.slack.load(Ordering::Relaxed)).min(NEVER - 1),
                Ordering::Relaxed,
            );
        }
        self.shows(wheel);
        drop(locked);
        self.set_due(due.len());
        due.sort_unstable_by_key(|timer| Reverse(timer.rank));
    }

    /// Nobody will lead here any more: wakes whoever waits for a timer, to arm it elsewhere, and has no other one armed.
    pub(super) fn close(&self) {
        let wheel = sync::lock(&self.wheel).take();
        self.earliest.store(NEVER, Ordering::Relaxed);
        wheel.into_iter().flat_map(Wheel::into_values).for_each(waking::wake);
    }
}

/// What an arming has changed for those who watch the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// Another deadline is earlier.
    Nothing,
    /// Its deadline is the earliest now.
    Earlier,
    /// It may be the earliest, and nobody watches over any.
    First,
}

/// One timer that is armed, or has fired; dropping it cancels.
#[derive(Debug)]
pub(crate) struct Alarm {
    reactor: Arc<Reactor>,
    id: u32,
}

impl Alarm {
    /// `None` if the reactor is closed.
    pub(crate) fn arm(reactor: Arc<Reactor>, at: Instant, waker: &Waker) -> Option<Self> {
        // Before the lock: it is user code (LF3).
        let waker = copy(waker);
        let (id, changed) = reactor.timers.change(at, |wheel, at| wheel.insert(at, waker))?;
        reactor.deadline_changed(changed);
        Some(Self { reactor, id })
    }

    /// Whether its reactor was closed, which woke its task: another one has to be armed.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // Relaxed: the wake-up makes it visible.
        self.reactor.closed.is_set()
    }

    /// Sets another deadline, and another waker, if there is one. False if the timer has fired, which takes its waker,
    /// and there is no other; or if it [is lost](Self::is_lost).
    ///
    /// # Panics
    ///
    /// If it was armed in the process that forked this one.
    pub(crate) fn rearm(&self, at: Instant, waker: Option<&Waker>) -> bool {
        assert!(
            !self.reactor.is_inherited(),
            "this timer was armed by the process that forked this one: make a new one after the fork"
        );
        let waker = waker.map(copy);
        let changed = self.reactor.timers.change(at, |wheel, at| wheel.rearm(self.id, at, waker));
        let Some((old, changed)) = changed else { return false };
        self.reactor.deadline_changed(changed);
        old.map(waking::discard).is_ok()
    }
}

fn copy(waker: &Waker) -> Waker {
    frame::here(|here| here.copy(waker))
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.reactor.is_inherited() {
            return;
        }
        let timers = &self.reactor.timers;
        let waker = sync::lock(&timers.wheel).as_mut().and_then(|wheel| wheel.remove(self.id));
        // Most timers are timeouts, so whoever cancels one arms another soon.
        waking::discard(waker.and_then(|waker| frame::here(|here| here.keep(waker))));
        self.reactor.note_gone();
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(std::sync::atomic::AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn times(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Timers {
        /// Arms a timer so long after the beginning.
        fn insert(&self, nanos: u64, waiter: &Arc<Woken>) -> (u32, Changed) {
            let waker = waiter.clone().into();
            let at = self.origin + Duration::from_nanos(nanos);
            self.change(at, |wheel, at| wheel.insert(at, waker)).unwrap()
        }
    }

    #[test]
    fn n5_only_an_earlier_deadline_and_the_first_one_that_nobody_watches_are_told() {
        let (timers, waiter) = (Timers::new(Duration::ZERO), Arc::default());
        let mut insert = |nanos| timers.insert(nanos, &waiter).1;
        assert_eq!(insert(5_000), Changed::First);
        assert_eq!([7_000, 5_000].map(&mut insert), [Changed::Nothing; 2]);
        assert_eq!([4_999, 4_999].map(&mut insert), [Changed::Earlier, Changed::Nothing]);
        assert_eq!((timers.earliest(), timers.armed()), (4_999, 5));
        timers.start_over();
        assert_eq!([9_000, 9_000].map(insert), [Changed::First, Changed::Nothing]);
        assert_eq!(timers.instant(4_000), Some(timers.origin + Duration::from_nanos(4_000)));
        assert_eq!(timers.instant(NEVER), None);
    }

    #[test]
    fn n8_the_end_of_time_is_a_deadline_that_never_comes() {
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
    fn n4_what_is_due_is_handed_out_from_the_last_to_the_first_and_counts_until_it_is_taken() {
        let (timers, waiter, hour) = (Timers::new(Duration::ZERO), Arc::default(), 3_600_000_000_000);
        let mut due = Vec::new();
        timers.expire(Instant::now(), &mut due);
        assert!(due.is_empty() && !timers.any());
        timers.insert(hour, &waiter);
        timers.insert(2, &waiter);
        timers.insert(1, &waiter);
        while timers.nanos(Instant::now()) < 2 {}
        timers.expire(Instant::now(), &mut due);
        assert!(due.iter().map(|timer| timer.rank.0).eq([2, 1]));
        assert_eq!((timers.earliest(), timers.armed()), (hour, 1));

        timers.close();
        assert!(timers.armed() == 0 && timers.any());
        timers.set_due(0);
        assert!(!timers.any());
        assert_eq!(waiter.times(), 1);
        assert!(timers.change(Instant::now(), |_, _| ()).is_none());
    }

    #[test]
    fn n5_the_earliest_deadline_may_be_of_a_timer_that_is_gone() {
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

    #[test]
    fn an_alarm_is_armed_until_it_fires_is_dropped_or_its_reactor_is_closed() {
        let (reactor, _watch) = Reactor::new(false, Duration::ZERO, Duration::ZERO).unwrap();
        let (reactor, waiter) = (Arc::new(reactor), Arc::<Woken>::default());
        let (waker, past) = (Waker::from(waiter.clone()), reactor.timers.origin);
        let later = past + Duration::from_secs(3_600);
        let arm = |at| Alarm::arm(reactor.clone(), at, &waker);
        let dropped = arm(later).unwrap();
        assert_eq!(reactor.timers(), 1);
        drop(dropped);
        assert_eq!((reactor.timers(), Arc::strong_count(&waiter)), (0, 2));

        let alarm = arm(later).unwrap();
        assert!(alarm.rearm(past, None) && !alarm.is_lost());
        let mut due = Vec::new();
        reactor.timers.expire(Instant::now(), &mut due);
        assert_eq!((due.len(), reactor.timers()), (1, 0));
        assert!(!alarm.rearm(later, None));
        assert!(alarm.rearm(later, Some(&waker)));
        assert_eq!(reactor.timers(), 1);

        reactor.close();
        assert_eq!(waiter.times(), 1);
        assert!(alarm.is_lost() && !alarm.rearm(later, Some(&waker)) && arm(later).is_none());
    }
}
