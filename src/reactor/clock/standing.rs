//! The clock by which timers are due: the system's, or one that stands still for a test, and goes on where the test says so.
//!
//! A clock that stands *leaps* to the next timer when nobody has anything to do: the only thread of its runtime leads, has looked for
//! events and found none, and is about to sleep; and nothing is held, as what blocks on purpose does while it runs. Who leaves off holding
//! interrupts the leader, which may be asleep because of it; and as it has woken whoever waits for it just before, the thread looks once
//! more, for tasks too, before the leap. Nothing else has to wake anybody for the leap: whatever makes something to do
//! ends the leader's sleep, and it comes by here before the next one.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::sync::{Instant, Mutex, MutexGuard};

/// Whether any clock of this process was ever stopped: until then nobody need ask which clock it is.
static ANY_STOOD: AtomicBool = AtomicBool::new(false);

/// A clock that can be stopped.
#[derive(Debug)]
pub(crate) struct Clock {
    hands: Mutex<Hands>,
    changes: AtomicU32,
    /// How many hold it, times two; and one if somebody has let go since it was looked.
    held: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
enum Hands {
    /// As the system's.
    Real,
    Stand {
        at: Instant,
    },
    /// They stood, and go as the system's do from where they were.
    Go {
        from: Instant,
        since: Instant,
    },
}

impl Hands {
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
        Self { hands: Mutex::new(Hands::Real), changes: AtomicU32::new(0), held: AtomicUsize::new(0) }
    }

    /// Whether any clock but the system's is in use in this process.
    #[inline]
    pub(crate) fn any_stood() -> bool {
        // Relaxed: who stops a clock does it on the thread whose timers are to see it.
        ANY_STOOD.load(Ordering::Relaxed)
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, hands: &mut Hands, to: Hands) {
        *hands = to;
        self.changes.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if Self::any_stood() { self.hands().show() } else { Instant::now() }
    }

    /// Stops it. False if it stands already.
    pub(crate) fn stop(&self) -> bool {
        ANY_STOOD.store(true, Ordering::Relaxed);
        let mut hands = self.hands();
        let stands = matches!(*hands, Hands::Stand { .. });
        if !stands {
            let at = hands.show();
            self.set(&mut hands, Hands::Stand { at });
        }
        !stands
    }

    /// It goes on from where it stands. False if it does not.
    pub(crate) fn go_on(&self) -> bool {
        let mut hands = self.hands();
        let Hands::Stand { at } = *hands else { return false };
        self.set(&mut hands, Hands::Go { from: at, since: Instant::now() });
        true
    }

    /// Moves it on by so much. False if it does not stand.
    pub(crate) fn advance(&self, by: Duration) -> bool {
        let mut hands = self.hands();
        let Hands::Stand { at } = *hands else { return false };
        let at = at.checked_add(by).expect("the clock does not go that far");
        self.set(&mut hands, Hands::Stand { at });
        true
    }

    pub(crate) fn stands(&self) -> bool {
        Self::any_stood() && matches!(*self.hands(), Hands::Stand { .. })
    }

    /// It does not leap until as many have called [`releases`](Self::releases).
    pub(crate) fn holds(&self) {
        self.held.fetch_add(2, Ordering::SeqCst);
    }

    pub(crate) fn releases(&self) {
        let _ = self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| Some((held - 2) | 1));
    }

    /// Whether somebody has let go since the last look, so that there may be something to do, or a leap.
    pub(crate) fn was_released(&self) -> bool {
        self.stands() && self.held.load(Ordering::SeqCst) & 1 != 0
    }

    /// Tells what was announced before a change from what was after it.
    pub(super) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// When the system has to ring for that deadline, and what its clock says. For a clock that stands it never rings.
    pub(super) fn in_real_time(&self, deadline: Option<Instant>, now: Instant) -> (Option<Instant>, Instant) {
        match *self.hands() {
            Hands::Real => (deadline, now),
            Hands::Stand { .. } => (None, Instant::now()),
            Hands::Go { .. } => {
                let real = Instant::now();
                let rings = |deadline: Instant| real.checked_add(deadline.saturating_duration_since(now));
                (deadline.and_then(rings), real)
            }
        }
    }

    /// Goes on to that moment, if it stands and nothing is held. True if there may be something to do.
    pub(super) fn leaps(&self, to: impl FnOnce() -> Option<Instant>) -> bool {
        if !self.stands() {
            return false;
        }
        let held = self.held.fetch_and(!1, Ordering::SeqCst);
        // Whoever let go has woken somebody before, perhaps after the thread looked whom: it looks once more.
        if held & 1 != 0 {
            return true;
        }
        if held > 1 {
            return false;
        }
        let Some(to) = to() else { return false };
        let mut hands = self.hands();
        let at = hands.show();
        if matches!(*hands, Hands::Stand { .. }) && to > at {
            self.set(&mut hands, Hands::Stand { at: to });
        }
        true
    }
}
