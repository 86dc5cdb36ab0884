//! The clock by which the timers of a reactor are due: the system's, or a clock that a test stops and moves
//! on.
//!
//! A stopped clock *leaps* to the next timer when there is nothing else to do: the only thread of its runtime
//! leads, has looked for events and found none, and is about to sleep; and the clock is not held, as it is by
//! a blocking closure that runs. A thread that releases the clock interrupts the leader, which may sleep only
//! because the clock was held. The releasing thread has just woken the task that waits for it, so the leader
//! looks once more, for tasks too, before the leap. Nothing else has to wake a thread for the leap: whatever
//! gives the leader something to do ends its sleep, and the leader comes by here before the next sleep.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use crate::sync::{Instant, Mutex, MutexGuard};

/// Whether a clock of this process was ever stopped: until then, `now` need not ask which clock it reads.
static ANY_STOOD: AtomicBool = AtomicBool::new(false);

/// A clock that can be stopped.
#[derive(Debug)]
pub(crate) struct Clock {
    hands: Mutex<ClockHands>,
    /// The number of changes of `hands`.
    changes: AtomicU32,
    /// The number of holders, times two; plus one if a holder has released the clock since the last look.
    held: AtomicUsize,
    /// The last moment that a stopped clock comes to, if there is one.
    end: OnceLock<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum ClockHands {
    /// The system's time.
    Real,
    Stand {
        /// The moment at which the clock is stopped.
        at: Instant,
    },
    /// The clock was stopped, and runs on from where it stood.
    Go {
        /// What the clock showed when it went on.
        from: Instant,
        /// The system's time at that moment.
        since: Instant,
    },
}

impl ClockHands {
    /// Returns the time that the hands show.
    fn show(self) -> Instant {
        match self {
            Self::Real => Instant::now(),
            Self::Stand { at } => at,
            Self::Go { from, since } => from + Instant::now().saturating_duration_since(since),
        }
    }
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            hands: Mutex::new(ClockHands::Real),
            changes: AtomicU32::new(0),
            held: AtomicUsize::new(0),
            end: OnceLock::new(),
        }
    }

    /// Returns whether a clock of this process was ever stopped.
    #[inline]
    fn any_stood() -> bool {
        // Relaxed suffices: a test stops the clock on the thread whose timers have to see it.
        ANY_STOOD.load(Ordering::Relaxed)
    }

    /// Returns what the clock of the current reactor says. `current` reads that clock; it is called only if
    /// some clock was ever stopped.
    #[inline]
    pub(crate) fn now_by(current: impl FnOnce() -> Option<Instant>) -> Instant {
        if Self::any_stood() { current().unwrap_or_else(Instant::now) } else { Instant::now() }
    }

    fn hands(&self) -> MutexGuard<'_, ClockHands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the locked `hands`, and counts that as a change: before its next wait, the leader announces its
    /// deadline anew. Wakes no thread.
    fn set(&self, hands: &mut ClockHands, to: ClockHands) {
        *hands = to;
        self.changes.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if Self::any_stood() { self.hands().show() } else { Instant::now() }
    }

    /// Stops the clock. Returns false if it is stopped already.
    pub(crate) fn stop(&self) -> bool {
        ANY_STOOD.store(true, Ordering::Relaxed);
        let mut hands = self.hands();
        let stands = matches!(*hands, ClockHands::Stand { .. });
        if !stands {
            let at = hands.show();
            self.set(&mut hands, ClockHands::Stand { at });
        }
        !stands
    }

    /// Sets the end of a clock that stays stopped: it never goes on to a later moment. Called once.
    pub(crate) fn end_at(&self, end: Instant) {
        assert!(self.end.set(end).is_ok(), "a clock has one end");
    }

    /// Returns whether a stopped clock comes to this moment.
    pub(crate) fn reaches(&self, at: Instant) -> bool {
        self.end.get().is_none_or(|end| at <= *end)
    }

    /// Lets the clock run on from where it stands. Returns false if it is not stopped. The caller interrupts
    /// the leader.
    pub(crate) fn go_on(&self) -> bool {
        let mut hands = self.hands();
        let ClockHands::Stand { at } = *hands else { return false };
        self.set(&mut hands, ClockHands::Go { from: at, since: Instant::now() });
        true
    }

    /// Moves a stopped clock on. Returns false if it is not stopped. Panics if the clock does not go that
    /// far. The caller interrupts the leader.
    pub(crate) fn advance(&self, by: Duration) -> bool {
        let mut hands = self.hands();
        let ClockHands::Stand { at } = *hands else { return false };
        let at = at.checked_add(by).filter(|at| self.reaches(*at)).expect("the clock does not go that far");
        self.set(&mut hands, ClockHands::Stand { at });
        true
    }

    pub(crate) fn stands(&self) -> bool {
        Self::any_stood() && matches!(*self.hands(), ClockHands::Stand { .. })
    }

    /// Keeps the clock from leaping until as many calls of [`release`](Self::release) were made.
    fn hold(&self) {
        self.held.fetch_add(2, Ordering::SeqCst);
    }

    /// Takes back one [`hold`](Self::hold), and leaves the mark that [`was_released`](Self::was_released)
    /// reads.
    fn release(&self) {
        let _ = self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| Some((held - 2) | 1));
    }

    /// Returns whether a holder has released the clock since the last look, so that there may be something to
    /// do, or a leap.
    pub(crate) fn was_released(&self) -> bool {
        self.stands() && self.held.load(Ordering::SeqCst) & 1 != 0
    }

    /// Returns a count that differs before and after a change of the clock.
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Converts `deadline`, a time of this clock, which shows `now`. Returns when the system has to ring for
    /// it, and the system's time. The first is `None` if the system never rings: without a deadline, for one
    /// too far away, and for a stopped clock.
    pub(crate) fn in_real_time(&self, deadline: Option<Instant>, now: Instant) -> (Option<Instant>, Instant) {
        match *self.hands() {
            ClockHands::Real => (deadline, now),
            ClockHands::Stand { .. } => (None, Instant::now()),
            ClockHands::Go { .. } => {
                let real = Instant::now();
                let rings = |deadline: Instant| real.checked_add(deadline.saturating_duration_since(now));
                (deadline.and_then(rings), real)
            }
        }
    }

    /// Moves a stopped clock on to the moment that `to` returns, if the clock is not held; never moves the
    /// clock back. Returns true if there may be something to do: once the clock has reached that moment, or,
    /// without a leap, if a holder has released the clock since the last call. Returns false if the clock
    /// runs or is held, or if `to` returns none or a moment after the end.
    pub(crate) fn try_leap(&self, to: impl FnOnce() -> Option<Instant>) -> bool {
        if !self.stands() {
            return false;
        }
        let held = self.held.fetch_and(!1, Ordering::SeqCst);
        // The holder has woken a task before its release, perhaps after this thread looked for tasks: so this
        // thread looks once more.
        if held & 1 != 0 {
            return true;
        }
        if held > 1 {
            return false;
        }
        let Some(to) = to().filter(|to| self.reaches(*to)) else { return false };
        let mut hands = self.hands();
        let at = hands.show();
        if matches!(*hands, ClockHands::Stand { .. }) && to > at {
            self.set(&mut hands, ClockHands::Stand { at: to });
        }
        true
    }
}

/// A reactor, as the holders of its clock see it.
pub(crate) trait Clocked {
    fn clock(&self) -> &Clock;
    /// Ends the sleep of the leader.
    fn interrupt(&self);
}

/// Keeps the clock of a reactor from leaping while it exists.
#[derive(Debug)]
pub(crate) struct ClockHold<R: Clocked>(Option<Arc<R>>);

impl<R: Clocked> ClockHold<R> {
    /// Holds the clock of the current reactor, if `current` returns one, and keeps that reactor alive.
    #[inline]
    pub(crate) fn new(current: impl FnOnce() -> Option<Arc<R>>) -> Self {
        Self(current().inspect(|reactor| reactor.clock().hold()))
    }
}

impl<R: Clocked> Drop for ClockHold<R> {
    /// Releases the clock. If it is stopped, interrupts the leader, which may sleep only because of the hold.
    fn drop(&mut self) {
        if let Some(reactor) = &self.0 {
            reactor.clock().release();
            if reactor.clock().stands() {
                reactor.interrupt();
            }
        }
    }
}
