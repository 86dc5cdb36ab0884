//! A [`Seat`]: where one thread waits, and the tokens that wake it.
//!
//! The word holds two tokens and two places to sleep. The tokens are sticky: one that arrives before the
//! thread sleeps keeps it from sleeping. They never merge (LF8): "your future was woken" and "you lead" are
//! bits of their own, and consuming one leaves the other.
//!
//! | word | meaning |
//! |---|---|
//! | `0` | awake, nothing to tell it |
//! | `ROOT` | its root future was woken |
//! | `LEAD` | it was chosen to lead and has not noticed yet |
//! | `PARKED` | asleep on its parker; a token's setter unparks it |
//! | `POLLING` | asleep in the poller; a token's setter interrupts the poller |
//!
//! `PARKED` and `POLLING` are set only while no token is, in one compare-and-swap, so there is no moment
//! between "nothing to do" and "asleep" in which a token could be missed (L3, L5). All changes are
//! read-modify-writes of this one word, hence no fences.

use super::Rank;
use crate::sync::{self, AtomicU8, AtomicU32, Flag, Ordering, Thread};

const ROOT: u32 = 1;
const LEAD: u32 = 2;
const PARKED: u32 = 4;
const POLLING: u32 = 8;
const TOKENS: u32 = ROOT | LEAD;
const ASLEEP: u32 = PARKED | POLLING;

/// One thread's place to wait in one `block_on`.
#[derive(Debug)]
pub(crate) struct Seat {
    word: AtomicU32,
    thread: Thread,
    /// What the thread brings along, and whether it is in the set. It alone writes them.
    rank: AtomicU8,
    is_member: Flag,
}

/// What the setter of the root token still has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Rouse {
    /// The thread is awake, or somebody else rouses it already.
    Nothing,
    /// It sleeps in the poller: interrupt the poller.
    Interrupt,
}

/// Why [`Seat::park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct Woken {
    /// The thread was chosen to lead; the token is consumed and the choice must be honoured or passed on.
    pub(crate) lead: bool,
    /// The root future was woken; the token stays until [`Seat::take_root`].
    pub(crate) root: bool,
}

impl Seat {
    /// A seat for the current thread.
    pub(crate) fn new(rank: Rank) -> Self {
        Self {
            word: AtomicU32::new(0),
            thread: sync::thread::current(),
            rank: AtomicU8::new(rank as u8),
            is_member: Flag::new(false),
        }
    }

    #[inline]
    pub(crate) fn rank(&self) -> Rank {
        match self.rank.load(Ordering::Relaxed) {
            rank if rank == Rank::Host as u8 => Rank::Host,
            rank if rank == Rank::Guest as u8 => Rank::Guest,
            _ => Rank::Relief,
        }
    }

    #[inline]
    pub(super) fn is_host(&self) -> bool {
        self.rank.load(Ordering::Relaxed) == Rank::Host as u8
    }

    /// What the thread brings along. Where it is in the set, that is for [`Leadership`](super::Leadership) to say.
    pub(crate) fn set_rank(&self, rank: Rank) {
        self.rank.store(rank as u8, Ordering::Relaxed);
    }

    pub(super) fn is_member(&self) -> bool {
        self.is_member.is_set()
    }

    pub(super) fn set_member(&self, is_member: bool) {
        self.is_member.set(is_member);
    }

    /// Leaves the root token. Unparks the thread itself; a thread that sleeps in the poller is the caller's
    /// to interrupt.
    pub(crate) fn wake_root(&self) -> Rouse {
        // ORDER: Release pairs with the Acquire of `take_root`: what the waker's caller did before is seen
        // by the poll that follows.
        let before = self.word.fetch_or(ROOT, Ordering::Release);
        if before & PARKED != 0 && before & TOKENS == 0 {
            self.thread.unpark();
        } else if before & POLLING != 0 && before & TOKENS == 0 {
            return Rouse::Interrupt;
        }
        Rouse::Nothing
    }

    /// Leaves the leadership token. Only for a seat that was taken out of the line, whose lock orders what came before: so
    /// this token and who takes it need not.
    pub(crate) fn grant_lead(&self) {
        let before = self.word.fetch_or(LEAD, Ordering::Relaxed);
        debug_assert_eq!(before & POLLING, 0, "a leader cannot be chosen to lead");
        if before & PARKED != 0 && before & TOKENS == 0 {
            self.thread.unpark();
        }
    }

    /// Consumes the root token.
    #[inline]
    pub(crate) fn take_root(&self) -> bool {
        // ORDER: Acquire pairs with the Release of `wake_root`.
        self.root_woken() && self.word.fetch_and(!ROOT, Ordering::Acquire) & ROOT != 0
    }

    /// Consumes the leadership token, outside of [`Seat::park`].
    pub(crate) fn take_lead(&self) -> bool {
        self.word.fetch_and(!LEAD, Ordering::Relaxed) & LEAD != 0
    }

    /// Whether the root token is there.
    #[inline]
    pub(crate) fn root_woken(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ROOT != 0
    }

    /// Whether either token is there.
    pub(crate) fn is_called(&self) -> bool {
        self.word.load(Ordering::Relaxed) & TOKENS != 0
    }

    /// Whether the thread sleeps, on its parker or in the poller.
    pub(crate) fn is_asleep(&self) -> bool {
        // ORDER: Acquire pairs with the Release of `park` and of `starts_polling`: who sees that a thread sleeps sees what
        // it did before.
        self.word.load(Ordering::Acquire) & ASLEEP != 0
    }

    /// Whether it sleeps in the poller: then it leads.
    pub(crate) fn is_polling(&self) -> bool {
        self.word.load(Ordering::Relaxed) & POLLING != 0
    }

    /// Sleeps until a token is there, or until `limit` has passed; returns at once if one is there already.
    pub(crate) fn park(&self, limit: Option<std::time::Duration>) -> Woken {
        // ORDER: Release pairs with the Acquire of `is_asleep`.
        if self.word.compare_exchange(0, PARKED, Ordering::Release, Ordering::Relaxed).is_ok() {
            let deadline = limit.map(|limit| sync::Instant::now() + limit);
            while !self.is_called() && sync::park_until(deadline) {}
        }
        let before = self.word.fetch_and(!(PARKED | LEAD), Ordering::Relaxed);
        Woken { lead: before & LEAD != 0, root: before & ROOT != 0 }
    }

    /// Announces that the thread is about to sleep in the poller; false if a token says not to.
    pub(crate) fn starts_polling(&self) -> bool {
        // ORDER: Release pairs with the Acquire of `is_asleep`.
        self.word.compare_exchange(0, POLLING, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The thread is back from the poller.
    pub(crate) fn stops_polling(&self) {
        self.word.fetch_and(!POLLING, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// All that a seat's word may be when somebody leaves a token there, or looks.
    const WORDS: [u32; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11];

    fn seat(word: u32) -> Seat {
        let seat = Seat::new(Rank::Host);
        seat.word.store(word, Ordering::Relaxed);
        seat
    }

    fn word(seat: &Seat) -> u32 {
        seat.word.load(Ordering::Relaxed)
    }

    /// The thread that sleeps is unparked, once; no other one is.
    fn unparks_only_a_sleeper(before: u32) {
        if before == PARKED {
            std::thread::park();
        }
        let (start, limit) = (Instant::now(), Duration::from_millis(2));
        std::thread::park_timeout(limit);
        assert!(start.elapsed() >= limit, "unparked for nothing: {before}");
    }

    #[test]
    fn lf8_a_token_wakes_who_sleeps_and_leaves_the_other_token_alone() {
        for before in WORDS {
            let seat = seat(before);
            let rouse = if before == POLLING { Rouse::Interrupt } else { Rouse::Nothing };
            assert_eq!((seat.wake_root(), word(&seat)), (rouse, before | 1), "{before}");
            unparks_only_a_sleeper(before);
        }
        for before in WORDS.into_iter().filter(|word| word & POLLING == 0) {
            let seat = seat(before);
            seat.grant_lead();
            assert_eq!(word(&seat), before | 2, "{before}");
            unparks_only_a_sleeper(before);
        }
    }

    #[test]
    fn lf8_taking_a_token_leaves_everything_else_alone() {
        for before in WORDS {
            let (root, lead) = (before & 1 != 0, before & 2 != 0);
            let seat = seat(before);
            assert_eq!((seat.root_woken(), seat.is_called()), (root, root || lead), "{before}");
            assert_eq!((seat.is_asleep(), word(&seat)), (before > 3, before), "{before}");
            assert_eq!((seat.take_root(), word(&seat)), (root, before & !1), "{before}");
            assert_eq!((seat.take_lead(), word(&seat)), (lead, before & !3), "{before}");
            seat.stops_polling();
            assert_eq!(word(&seat), before & 4, "{before}");
        }
    }

    #[test]
    fn l5_nobody_falls_asleep_over_a_token() {
        for before in 0..4 {
            let seat = seat(before);
            assert_eq!(seat.starts_polling(), before == 0);
            assert_eq!(word(&seat), if before == 0 { POLLING } else { before });
        }
        for before in 1..4 {
            let seat = seat(before);
            let woken = Woken { lead: before & 2 != 0, root: before & 1 != 0 };
            assert_eq!((seat.park(None), word(&seat)), (woken, before & 1));
        }
    }

    #[test]
    fn a_limit_ends_a_sleep_and_nothing_else_does() {
        let (seat, limit) = (seat(0), Duration::from_millis(20));
        let start = Instant::now();
        // A token of somebody else's, which is for whatever else parks on this thread.
        std::thread::current().unpark();
        assert_eq!(seat.park(Some(limit)), Woken { lead: false, root: false });
        assert!(start.elapsed() >= limit);
        assert_eq!(word(&seat), 0);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
