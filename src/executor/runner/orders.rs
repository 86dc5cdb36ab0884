//! [`Orders`]: the requests of other threads to a runner, in a word from which the runner's thread takes
//! them.
//!
//! | bit | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `ROOT_IS_DUE` | poll the future that `run` drives: it was woken | its waker | own thread |
//! | `TICK` | poll the reactor before the next task | the deputy, at each look | own thread |
//! | `SEARCH` | look for tasks everywhere | own thread, called while it slept; the deputy | own thread |
//! | `LEFT` | forget the runner: its `run` has moved or is gone | any thread with the `run` | no thread |
//!
//! A thread that takes or finds a bit sees the writes that preceded the setting of the bit. Each change is a
//! read-modify-write, so a change of another bit in between continues the release sequence.

use crate::sync::{AtomicU32, Ordering};

const ROOT_IS_DUE: u32 = 1 << 0;
const SEARCH: u32 = 1 << 1;
const TICK: u32 = 1 << 2;
const LEFT: u32 = 1 << 3;

/// The word.
#[derive(Debug)]
pub(crate) struct Orders(AtomicU32);

impl Orders {
    /// Creates the orders of a new runner: to poll its future, and to look for tasks everywhere.
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(ROOT_IS_DUE | SEARCH))
    }

    #[inline]
    fn has(&self, bit: u32) -> bool {
        // ORDER: Acquire pairs with the Release of `give`.
        self.0.load(Ordering::Acquire) & bit != 0
    }

    #[inline]
    fn give(&self, bits: u32) {
        // ORDER: Release pairs with the Acquire of `has` and `take`.
        self.0.fetch_or(bits, Ordering::Release);
    }

    /// Clears `bits`. Returns the word before that.
    #[inline]
    fn clear(&self, bits: u32) -> u32 {
        // ORDER: Acquire pairs with the Release of `give`; Release with the Acquire of `has` on a thread that
        // finds the bits cleared.
        self.0.fetch_and(!bits, Ordering::AcqRel)
    }

    /// Clears `bit`. Returns whether it was set; a plain load if it was not.
    #[inline]
    fn take(&self, bit: u32) -> bool {
        self.has(bit) && self.clear(bit) & bit != 0
    }

    #[inline]
    pub(crate) fn wake_root(&self) {
        self.give(ROOT_IS_DUE);
    }

    #[inline]
    pub(crate) fn is_root_woken(&self) -> bool {
        self.has(ROOT_IS_DUE)
    }

    #[inline]
    #[must_use]
    pub(crate) fn take_root(&self) -> bool {
        self.take(ROOT_IS_DUE)
    }

    pub(crate) fn search(&self) {
        self.give(SEARCH);
    }

    #[inline]
    #[must_use]
    pub(crate) fn take_search(&self) -> bool {
        self.take(SEARCH)
    }

    /// Tells the thread that the deputy has looked: its round of tasks is over after the present one. The
    /// order for a runner that sleeps meanwhile costs it an empty round when it wakes up.
    pub(crate) fn end_round(&self) {
        self.give(TICK);
    }

    pub(crate) fn is_tick_over(&self) -> bool {
        self.has(TICK)
    }

    #[inline]
    #[must_use]
    pub(crate) fn take_tick(&self) -> bool {
        self.take(TICK)
    }

    pub(crate) fn set_left(&self) {
        self.give(LEFT);
    }

    #[inline]
    pub(crate) fn has_left(&self) -> bool {
        self.has(LEFT)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn orders(word: u32) -> Orders {
        Orders(AtomicU32::new(word))
    }

    fn word(orders: &Orders) -> u32 {
        orders.0.load(Ordering::Relaxed)
    }

    /// Fails if an order sets or clears the bit of another one.
    #[test]
    fn each_order_changes_its_bits_and_leaves_the_others() {
        type Give = fn(&Orders);
        type Take = fn(&Orders) -> bool;
        let given: [(u32, Give); 4] = [
            (ROOT_IS_DUE, Orders::wake_root),
            (SEARCH, Orders::search),
            (TICK, Orders::end_round),
            (LEFT, Orders::set_left),
        ];
        let taken: [(u32, Take); 3] =
            [(ROOT_IS_DUE, Orders::take_root), (SEARCH, Orders::take_search), (TICK, Orders::take_tick)];
        for before in 0..16 {
            for (bits, give) in given {
                let orders = orders(before);
                give(&orders);
                assert_eq!(word(&orders), before | bits);
            }
            for (bit, take) in taken {
                let orders = orders(before);
                assert_eq!(take(&orders), before & bit != 0, "{before:b}");
                assert_eq!((word(&orders), take(&orders)), (before & !bit, false));
            }
        }
    }

    #[test]
    fn a_new_runner_is_to_poll_its_future_and_to_search() {
        let orders = Orders::new();
        assert!(orders.is_root_woken() && orders.take_root() && orders.take_search());
        assert!(!orders.is_root_woken() && !orders.has_left());
    }
}
