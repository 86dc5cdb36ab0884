//! A [`Seat`]: where one thread waits, and the tokens that wake it.
//!
//! The word holds two tokens and two places to sleep. The tokens are sticky: a token that arrives before the
//! thread sleeps keeps it from sleeping. Two tokens never merge (LF8): "your future was woken" and "you lead"
//! are separate bits, and consuming one leaves the other.
//!
//! | word | meaning |
//! |---|---|
//! | `0` | awake, without a token |
//! | `ROOT` | the root future was woken |
//! | `LEAD` | the thread was chosen to lead and has not noticed yet |
//! | `PARKED` | asleep on its parker; a token's setter unparks it |
//! | `IN_POLLER` | asleep in the poller; a token's setter interrupts the poller |
//!
//! `PARKED` and `IN_POLLER` are set only while there is no token, in one compare-and-swap. So there is no
//! moment between "nothing to do" and "asleep" in which a token could be missed. All changes are
//! read-modify-writes of this one word, so no fence is needed.

use std::sync::atomic;

use super::Rank;
use crate::flight::ThreadNumber;
use crate::sync::{self, AtomicU8, AtomicU32, Flag, Ordering, Thread};

const ROOT: u32 = 1;
const LEAD: u32 = 2;
const PARKED: u32 = 4;
const IN_POLLER: u32 = 8;
const TOKENS: u32 = ROOT | LEAD;
const ASLEEP: u32 = PARKED | IN_POLLER;

/// One thread's place to wait in one `block_on`.
#[derive(Debug)]
pub(crate) struct Seat {
    word: AtomicU32,
    thread: Thread,
    pub(crate) number: ThreadNumber,
    /// The thread's rank, and whether it is in the set. Only the thread itself writes them.
    rank: AtomicU8,
    pub(super) is_member: Flag,
    /// The thread was chosen to lead, whatever its rank. Only the thread itself uses this and the next. They
    /// are here and not in a role, so that a role fits into registers. Std's in all modes: they order
    /// nothing.
    pub(super) granted: atomic::AtomicBool,
    /// The thread led and is no host, so a thread with a better claim may wait for the leadership that it
    /// left vacant.
    pub(super) owes: atomic::AtomicBool,
}

/// Why [`Seat::park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct Woken {
    /// The thread was chosen to lead. The token is consumed, so the thread has to lead or to pass leadership
    /// on.
    pub(crate) lead: bool,
    /// The root future was woken. The token stays until [`Seat::take_root`].
    pub(crate) root: bool,
}

impl Seat {
    /// Makes a seat for the current thread, which is no member of a set yet.
    pub(crate) fn new(rank: Rank) -> Self {
        Self {
            word: AtomicU32::new(0),
            thread: sync::thread::current(),
            number: ThreadNumber::here(),
            rank: AtomicU8::new(rank as u8),
            is_member: Flag::new(false),
            granted: false.into(),
            owes: false.into(),
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

    /// Changes the rank. If the thread is in a set, only
    /// [`Leadership::set_rank`](super::Leadership::set_rank) may call this.
    pub(crate) fn set_rank(&self, rank: Rank) {
        self.rank.store(rank as u8, Ordering::Relaxed);
    }

    /// Sets the root token. If it is the first token, wakes the sleeping thread: unparks a parked one, or
    /// returns true for one that sleeps in the poller, which the caller has to interrupt.
    #[must_use]
    pub(crate) fn wake_root(&self) -> bool {
        // ORDER: Release pairs with the Acquire of `take_root`: the poll that follows sees what the waker's
        // caller did before.
        let before = self.word.fetch_or(ROOT, Ordering::Release);
        if before & PARKED != 0 && before & TOKENS == 0 {
            self.thread.unpark();
        }
        before & IN_POLLER != 0 && before & TOKENS == 0
    }

    /// Sets the leadership token of a seat that is taken out of the line, under the lock of the line. The
    /// thread must not sleep in the poller. The caller calls [`unpark_granted`](Self::unpark_granted) next,
    /// without the lock.
    pub(crate) fn grant_lead(&self) {
        // Relaxed suffices: the lock orders what came before.
        let before = self.word.fetch_or(LEAD, Ordering::Relaxed);
        debug_assert_eq!(before & IN_POLLER, 0, "a leader cannot be chosen to lead");
    }

    /// Unparks the thread if it is parked. The thread may have noticed the token by itself, and be parked
    /// anew, in which case it parks again.
    pub(crate) fn unpark_granted(&self) {
        // Relaxed suffices: a thread that parked before the token was set is seen parked, or has woken up.
        if self.word.load(Ordering::Relaxed) & PARKED != 0 {
            self.thread.unpark();
        }
    }

    /// Consumes the root token. Returns whether it was set.
    #[inline]
    pub(crate) fn take_root(&self) -> bool {
        // ORDER: Acquire pairs with the Release of `wake_root`.
        self.root_woken() && self.word.fetch_and(!ROOT, Ordering::Acquire) & ROOT != 0
    }

    /// Consumes the leadership token, outside of [`Seat::park`]. Returns whether it was set.
    pub(crate) fn take_lead(&self) -> bool {
        self.word.fetch_and(!LEAD, Ordering::Relaxed) & LEAD != 0
    }

    #[inline]
    pub(crate) fn root_woken(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ROOT != 0
    }

    pub(crate) fn is_called(&self) -> bool {
        self.word.load(Ordering::Relaxed) & TOKENS != 0
    }

    pub(crate) fn is_asleep(&self) -> bool {
        // ORDER: Acquire pairs with the Release of `park` and of `start_polling`: an observer that sees the
        // thread asleep sees what the thread did before.
        self.word.load(Ordering::Acquire) & ASLEEP != 0
    }

    pub(crate) fn is_polling(&self) -> bool {
        self.word.load(Ordering::Relaxed) & IN_POLLER != 0
    }

    /// Sleeps until a token is set, or until `limit` has passed: then neither is set in the result. Returns
    /// at once if a token is set already. Consumes the leadership token.
    pub(crate) fn park(&self, limit: Option<std::time::Duration>) -> Woken {
        // ORDER: Release pairs with the Acquire of `is_asleep`.
        if self.word.compare_exchange(0, PARKED, Ordering::Release, Ordering::Relaxed).is_ok() {
            let deadline = limit.map(|limit| sync::Instant::now() + limit);
            while !self.is_called() && sync::park_until(deadline) {}
        }
        let before = self.word.fetch_and(!(PARKED | LEAD), Ordering::Relaxed);
        Woken { lead: before & LEAD != 0, root: before & ROOT != 0 }
    }

    /// Announces that the thread is about to sleep in the poller. Returns false if a token is set: then the
    /// thread must not sleep, and nothing was announced.
    pub(crate) fn start_polling(&self) -> bool {
        // ORDER: Release pairs with the Acquire of `is_asleep`.
        self.word.compare_exchange(0, IN_POLLER, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Announces that the thread is back from the poller.
    pub(crate) fn stop_polling(&self) {
        self.word.fetch_and(!IN_POLLER, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// All values of a seat's word that a setter or an observer may find.
    const WORDS: [u32; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11];

    fn seat(word: u32) -> Seat {
        let seat = Seat::new(Rank::Host);
        seat.word.store(word, Ordering::Relaxed);
        seat
    }

    fn word(seat: &Seat) -> u32 {
        seat.word.load(Ordering::Relaxed)
    }

    /// Asserts that the thread was unparked exactly if that was due.
    fn assert_unparked(due: bool, before: u32) {
        if due {
            std::thread::park();
        }
        let (start, limit) = (Instant::now(), Duration::from_millis(2));
        std::thread::park_timeout(limit);
        assert!(start.elapsed() >= limit, "unparked for nothing: {before}");
    }

    #[test]
    fn lf8_a_token_wakes_a_sleeping_thread_and_leaves_the_other_token_alone() {
        for before in WORDS {
            let seat = seat(before);
            assert_eq!((seat.wake_root(), word(&seat)), (before == IN_POLLER, before | 1), "{before}");
            assert_unparked(before == PARKED, before);
        }
        for before in WORDS.into_iter().filter(|word| word & IN_POLLER == 0) {
            let seat = seat(before);
            seat.grant_lead();
            assert_unparked(false, before);
            seat.unpark_granted();
            assert_eq!(word(&seat), before | 2, "{before}");
            assert_unparked(before & PARKED != 0, before);
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
            seat.stop_polling();
            assert_eq!(word(&seat), before & 4, "{before}");
        }
    }

    #[test]
    fn no_thread_falls_asleep_over_a_token() {
        for before in 0..4 {
            let seat = seat(before);
            assert_eq!(seat.start_polling(), before == 0);
            assert_eq!(word(&seat), if before == 0 { IN_POLLER } else { before });
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
        // A token of the thread that is meant for other code that parks on it.
        std::thread::current().unpark();
        assert_eq!(seat.park(Some(limit)), Woken { lead: false, root: false });
        assert!(start.elapsed() >= limit);
        assert_eq!(word(&seat), 0);
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
