//! Whether a follower stays awake for a moment before it parks.
//!
//! To park and to be woken takes a system call of each side and a switch, and where the core goes idle in between tens
//! of microseconds more. Two threads that wait for each other in turn, as a `block_on` and the task that it awaits do,
//! pay that twice a round. A thread whose waits are that short is cheaper to keep awake: it looks whether it has a
//! token, and lets others run in between.
//!
//! Nobody else has to know. The thread has announced already that it sleeps, so whoever wants it leaves a token, and
//! finds nobody to unpark. What it does not do in this time is to take leadership that fell vacant: whoever left it is
//! on its way back, with the caches warm (R1).
//!
//! Whether it pays is learned from the thread's own waits. A moment that was not enough makes it leave out the next
//! ones, up to [`MOST`]; one that was enough halves that number. It only counts waits that were short, so a thread
//! whose waits are long stays awake for none of them. No clock is read by a thread that does not wait.

use std::cell::Cell;
use std::time::Duration;

use crate::sync::{Instant, thread, thread_local};

/// Short waits before the first try.
const FIRST: u32 = 8;
/// Short waits that are left out at most, before the next try.
const MOST: u32 = 64;
/// A try that fails has this many times as many waits left out as the last one had: it costs more than one that
/// succeeds saves, so three of four have to.
const DEARER: u32 = 8;

/// What a thread remembers of its waits.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Short waits to leave out after a try.
    pause: u32,
    /// Those of them that are left.
    left: u32,
}

thread_local! {
    /// Of the thread and not of its seat, of which every `block_on` has a new one.
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { pause: FIRST, left: FIRST }) };
}

impl Memory {
    fn tried(&mut self, caught: bool) {
        self.pause = if caught { self.pause / 2 } else { (self.pause.max(1) * DEARER).min(MOST) };
        self.left = self.pause;
    }

    fn slept_shortly(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// One wait.
#[derive(Debug)]
pub(super) struct Vigil {
    /// When it began and what is a short one, if the thread did not stay awake.
    measured: Option<(Instant, Duration)>,
    /// For how long it stayed awake.
    pub(super) awake: Duration,
}

impl Vigil {
    /// Stays awake until `called`, but no longer than `limit`; or not at all, if that would not pay.
    pub(super) fn keep(limit: Duration, called: impl Fn() -> bool) -> Self {
        let mut vigil = Self { measured: None, awake: Duration::ZERO };
        if limit.is_zero() || called() {
            return vigil;
        }
        let since = Instant::now();
        let mut memory = MEMORY.get();
        if memory.left > 0 {
            // Being woken takes about as long again as what is to be caught.
            vigil.measured = Some((since, 2 * limit));
            return vigil;
        }
        let caught = loop {
            thread::yield_now();
            vigil.awake = since.elapsed();
            if called() {
                break true;
            }
            if vigil.awake >= limit {
                break false;
            }
        };
        memory.tried(caught);
        MEMORY.set(memory);
        vigil
    }

    /// The wait is over.
    pub(super) fn end(self) {
        if self.measured.is_some_and(|(since, short)| since.elapsed() < short) {
            let mut memory = MEMORY.get();
            memory.slept_shortly();
            MEMORY.set(memory);
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// A wait that is over at the second look, or the first after a sleep. True if the thread stayed awake for it.
    fn short_wait() -> bool {
        let looks = Cell::new(0);
        let vigil = Vigil::keep(LIMIT, || looks.replace(looks.get() + 1) > 0);
        let awake = vigil.awake > Duration::ZERO;
        vigil.end();
        awake
    }

    #[test]
    fn short_waits_keep_it_awake_once_it_knows_them() {
        assert_eq!((0..FIRST).filter(|_| short_wait()).count(), 0, "it stays awake before it knows");
        let _learning = (0..2 * FIRST).filter(|_| short_wait()).count();
        assert_eq!((0..100).filter(|_| short_wait()).count(), 100);
    }

    #[test]
    fn in_vain_it_stays_awake_for_one_wait_in_many() {
        let missed = || Vigil::keep(Duration::from_nanos(1), || false).awake > Duration::ZERO;
        assert_eq!((0..FIRST).filter(|_| short_wait()).count(), 0);
        assert!(missed());
        let next = (0..).position(|_| short_wait()).unwrap();
        assert_eq!(next as u32, MOST);
    }

    #[test]
    fn long_waits_never_keep_it_awake() {
        for _ in 0..1000 {
            // Nothing is shorter than twice this.
            let vigil = Vigil::keep(Duration::from_nanos(1), || false);
            assert_eq!(vigil.awake, Duration::ZERO);
            thread::yield_now();
            vigil.end();
        }
    }

    #[test]
    fn no_limit_no_vigil() {
        for _ in 0..1000 {
            let vigil = Vigil::keep(Duration::ZERO, || false);
            assert!(vigil.measured.is_none() && vigil.awake.is_zero());
        }
    }
}
