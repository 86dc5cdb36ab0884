//! [`Stage`]: how far a thread has got, in a word that the thread writes for its observers.
//!
//! Each `block_on` has such a word, and so has each runner. The thread changes it by plain stores, so that
//! being observed costs no more than these; an observer compares two readings.
//!
//! | bits | meaning | changed |
//! |---|---|---|
//! | 0 | the `block_on` is suspended: a nested one waits on top of it | by the nested one |
//! | 1 | the thread is at work: it polls a task, or calls a waker | at begin and end |
//! | 2 to 29 | how often it was at work; an overflow counts as a step | at the end |
//! | 30 to 63 | its steps; an overflow is lost | when the thread is awake, or goes on without an event |

// Std's but in the models of loom. In those of shuttle a change of a stage would be a step.
#[cfg(paceline_loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(paceline_loom))]
use std::sync::atomic::{AtomicU64, Ordering};

const SUSPENDED: u64 = 1;
const WORK: u64 = 1 << 1;
// The operand fits into the instruction that adds it.
const STEP: u64 = 1 << 30;

/// The word, which one thread at a time writes.
#[derive(Debug, Default)]
pub(crate) struct StageCell(AtomicU64);

/// A mark on one stage of a thread, with a bit beside it; in the beginning on no stage at work. It is on the
/// stage for which it was set, and on no other, so it need not be cleared.
// ORDER: Relaxed throughout: the word says all, and is compared.
#[derive(Debug, Default)]
pub(crate) struct StageMark(AtomicU64);

/// A reading. Two equal readings mean that the thread made no progress between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stage(u64);

impl Stage {
    /// Returns whether the thread polls a task, or calls a waker.
    pub(crate) fn is_at_work(self) -> bool {
        self.0 & WORK != 0
    }

    /// Returns how often the thread has begun or ended to work. Steps do not count.
    pub(crate) fn work(self) -> u64 {
        self.0 % STEP / WORK
    }
}

impl StageMark {
    pub(crate) fn set(&self, stage: Stage, bit: bool) {
        // A stage leaves the lowest bit free.
        self.0.store(stage.0 | u64::from(bit), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_on(&self, stage: Stage) -> bool {
        self.0.load(Ordering::Relaxed) & !SUSPENDED == stage.0
    }

    /// Returns the bit beside the mark; `None` if the mark is not on this stage.
    pub(crate) fn get(&self, stage: Stage) -> Option<bool> {
        let word = self.0.load(Ordering::Relaxed);
        (word & !SUSPENDED == stage.0).then_some(word & SUSPENDED != 0)
    }
}

impl StageCell {
    /// Replaces the word by what `change` makes of it, by a load and a store: only for the thread that writes
    /// it.
    #[inline]
    fn change(&self, change: impl FnOnce(u64) -> u64) {
        // ORDER: Release pairs with the Acquire of `word`: an observer of a stage sees what came before it.
        self.0.store(change(self.0.load(Ordering::Relaxed)), Ordering::Release);
    }

    fn word(&self) -> u64 {
        // ORDER: Acquire pairs with the Release of `change`.
        self.0.load(Ordering::Acquire)
    }

    /// Marks the begin of a poll of a task, or of the call of a waker; or its end.
    #[inline]
    pub(crate) fn toggle_work(&self) {
        self.change(|word| word.wrapping_add(WORK));
    }

    /// Counts progress of a thread that is not at work.
    #[inline]
    pub(crate) fn step(&self) {
        self.change(|word| word.wrapping_add(STEP));
    }

    /// Marks that a nested `block_on` waits from now on, which is not progress.
    pub(crate) fn suspend(&self) {
        self.change(|word| word | SUSPENDED);
    }

    /// Marks that the nested `block_on` has returned.
    pub(crate) fn resume(&self) {
        self.change(|word| word & !SUSPENDED);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.word() & SUSPENDED != 0
    }

    #[inline]
    pub(crate) fn get(&self) -> Stage {
        Stage(self.word() & !SUSPENDED)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_change_but_a_suspension_is_progress() {
        let cell = StageCell::default();
        let mut seen = vec![cell.get()];
        for (change, is_at_work) in [
            (StageCell::toggle_work as fn(&StageCell), true),
            (StageCell::toggle_work, false),
            (StageCell::step, false),
            (StageCell::toggle_work, true),
        ] {
            change(&cell);
            assert_eq!((cell.get().is_at_work(), seen.contains(&cell.get())), (is_at_work, false));
            seen.push(cell.get());
        }
        cell.suspend();
        assert_eq!((cell.is_suspended(), Some(&cell.get())), (true, seen.last()));
        cell.resume();
        assert_eq!((cell.is_suspended(), Some(&cell.get())), (false, seen.last()));
        assert_eq!(cell.get().work(), 3);
        assert!(seen.windows(2).all(|two| two[0].work() <= two[1].work()));
    }

    /// The counts wrap within hours on a busy thread.
    #[test]
    fn a_count_that_wraps_changes_nothing_else() {
        let cell = StageCell(AtomicU64::new(u64::MAX - SUSPENDED));
        assert!(cell.get().is_at_work() && !cell.is_suspended());
        cell.toggle_work();
        assert!(!cell.get().is_at_work() && !cell.is_suspended());
        let cell = StageCell(AtomicU64::new(STEP.wrapping_neg()));
        cell.step();
        assert!(!cell.get().is_at_work() && !cell.is_suspended());
    }
}
