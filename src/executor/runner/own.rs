//! [`Own`]: the flags of a runner's own thread, in a word that no other thread uses.
//!
//! The owner is the thread that polls the `run`. If a `block_on` hosts the runner, that is the thread of
//! the `block_on`, between two polls as well: a `run` that moves to another thread leaves its runner with
//! the host, and gets a new one. Without a host, the code that moves the `run` to another thread orders the
//! accesses of the two threads.
//!
//! | bit | meaning | set | cleared |
//! |---|---|---|---|
//! | `RESTS` | the runner may be in the line | before it enters the line | when its thread is awake |
//! | `HAS_ROOT` | it is polled with the waker of the frame | when the frame hosts it | the same |
//! | `REQUESTED` | it has tasks, and asks for a poll | when it found them before a rest | at the next poll |

use crate::sync::{AtomicU32, Ordering::Relaxed};

const RESTS: u32 = 1 << 0;
const HAS_ROOT: u32 = 1 << 1;
const REQUESTED: u32 = 1 << 2;

/// The word. Each change is a plain load and store.
// ORDER: Relaxed throughout: one thread at a time uses it.
#[derive(Debug)]
pub(crate) struct Own(AtomicU32);

impl Own {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline]
    fn has(&self, bit: u32) -> bool {
        self.0.load(Relaxed) & bit != 0
    }

    /// Sets or clears `bit`, by a load and a store: only for the thread that uses the word.
    #[inline]
    fn put(&self, bit: u32, is_set: bool) {
        let others = self.0.load(Relaxed) & !bit;
        self.0.store(if is_set { others | bit } else { others }, Relaxed);
    }

    /// Notes that the runner is about to enter the line.
    pub(crate) fn start_rest(&self) {
        self.put(RESTS, true);
    }

    /// Clears and returns whether the runner may be in the line.
    #[inline]
    #[must_use]
    pub(crate) fn end_rest(&self) -> bool {
        let rested = self.has(RESTS);
        if rested {
            self.put(RESTS, false);
        }
        rested
    }

    /// Sets whether the runner is polled with the waker of the frame's own future.
    pub(crate) fn set_root(&self, is_root: bool) {
        self.put(HAS_ROOT, is_root);
    }

    #[inline]
    pub(crate) fn is_root(&self) -> bool {
        self.has(HAS_ROOT)
    }

    /// Sets whether the runner asks to be polled, because it has tasks after all. The runner counts as awake
    /// until it is polled.
    #[inline]
    pub(crate) fn set_requested(&self, is_requested: bool) {
        self.put(REQUESTED, is_requested);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.has(REQUESTED)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Fails if a transition changes the bit of another one.
    #[test]
    fn each_transition_changes_its_bit_and_leaves_the_others() {
        type Setter = fn(&Own);
        let transitions: [(u32, Setter, Setter); 3] = [
            (RESTS, Own::start_rest, |own| assert!(own.end_rest())),
            (HAS_ROOT, |own| own.set_root(true), |own| own.set_root(false)),
            (REQUESTED, |own| own.set_requested(true), |own| own.set_requested(false)),
        ];
        for (bit, set, clear) in transitions {
            for before in 0..8 {
                let own = Own(AtomicU32::new(before));
                set(&own);
                assert_eq!(own.0.load(Relaxed), before | bit);
                set(&own);
                assert_eq!(
                    [own.is_root(), own.is_requested()],
                    [HAS_ROOT, REQUESTED].map(|other| (before | bit) & other != 0)
                );
                clear(&own);
                assert_eq!(own.0.load(Relaxed), before & !bit);
            }
        }
        let none = Own::new();
        none.set_root(false);
        none.set_requested(false);
        assert_eq!((none.end_rest(), none.0.load(Relaxed)), (false, 0));
    }
}
