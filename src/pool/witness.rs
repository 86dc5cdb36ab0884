//! [`Witness`]: what the deputy learns of a thread that does not get any further.
//!
//! A task that has been polled for two looks may be at three things, and the clock on the wall does not tell which:
//!
//! | what | known by | what helps |
//! |---|---|---|
//! | it *blocks*: sleeps in a system call, or in a page fault | no processor time used, and the letter of its state | another thread, at once |
//! | it *computes* | processor time used | nothing, where all cores compute; one thread that serves others meanwhile |
//! | it *waits* for a core, which other threads have | neither | nothing |
//!
//! To ask for the processor time costs a third of a microsecond; for the letter, some six: asked only of who has used little
//! time since the last look, and not again of who is known to block and has used none since.

use std::mem;
use std::time::Duration;

use super::thread_state::ThreadState;
use crate::sync::Instant;

/// Processor time after which a task is one that computes, even if it waits for its core just now. One that is quick, and
/// has lost its core, has used less.
const LONG: Duration = Duration::from_millis(1);

/// What a thread is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It sleeps, or nobody tells what it does: which is taken for the same.
    Blocks,
    /// It uses a core.
    Computes,
    /// It would use one if it had one.
    Waits,
    /// It used one, and sleeps just now. Asked again before it counts as one that blocks.
    Dozes,
}

/// What is known of a thread since it began something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witness {
    looked: Instant,
    processor_time: Option<Duration>,
    doing: Option<Doing>,
    /// It was asleep at a look, but had run before that; and has not computed since.
    dozed: bool,
    /// How long it has blocked, all in all; and the same of the others, as far as that was seen.
    pub(super) blocked: Duration,
    pub(super) computed: Duration,
    pub(super) waited: Duration,
}

impl Witness {
    /// It has begun something since the last look. Who sleeps, and has to wake up first, need not be asked.
    pub(super) fn new(thread: Option<ThreadState>, now: Instant) -> Self {
        let [blocked, computed, waited] = [Duration::ZERO; 3];
        let processor_time = thread.and_then(ThreadState::processor_time);
        Self { looked: now, processor_time, doing: None, dozed: false, blocked, computed, waited }
    }

    /// Whether it did at the last look.
    pub(super) fn blocks(&self) -> bool {
        self.doing == Some(Doing::Blocks)
    }

    /// Whether anything is known at all.
    pub(super) fn tells(&self) -> bool {
        self.processor_time.is_some()
    }

    /// It is still at it: what is it?
    pub(super) fn look(&mut self, thread: ThreadState, now: Instant) -> Doing {
        let elapsed = now - self.looked;
        // Who has slept for long may go on for longer: hundreds of them are not asked a thousand times a second.
        if self.blocks() && elapsed < self.blocked / 8 {
            return Doing::Blocks;
        }
        let before = self.processor_time;
        (self.looked, self.processor_time) = (now, thread.processor_time());
        let used = match (before, self.processor_time) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => Duration::ZERO,
        };
        self.learns(elapsed, used, || thread.is_running().unwrap_or(false))
    }

    /// It has used so much processor time since the last look, which was so long ago. Whether it runs is asked only where that
    /// does not say it.
    fn learns(&mut self, elapsed: Duration, used: Duration, is_running: impl FnOnce() -> bool) -> Doing {
        let doing = match self.doing {
            // It has not run since it was found asleep.
            Some(Doing::Blocks) if used.is_zero() => Doing::Blocks,
            _ if used >= elapsed / 2 && !used.is_zero() => {
                self.dozed = false;
                Doing::Computes
            }
            // Who ran, and is asleep just now, may have to wait for a lock for a moment: it is to be asleep once more.
            _ if !is_running() => {
                let blocks = used.is_zero() || mem::replace(&mut self.dozed, true);
                if blocks { Doing::Blocks } else { Doing::Dozes }
            }
            // Who naps again and again runs now and then, which helps nobody.
            _ if self.dozed && self.blocked > self.computed + self.waited => Doing::Blocks,
            _ if self.computed + used >= LONG => Doing::Computes,
            _ => Doing::Waits,
        };
        self.doing = Some(doing);
        self.computed += used;
        let rest = elapsed.saturating_sub(used);
        match doing {
            Doing::Blocks => self.blocked += rest,
            Doing::Computes | Doing::Waits => self.waited += rest,
            Doing::Dozes => {}
        }
        doing
    }
}

/// What is said of one look after the other.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod rules {
    use super::Doing::{Blocks, Computes, Dozes, Waits};
    use super::*;

    const TICK: Duration = Duration::from_millis(1);
    const NONE: Duration = Duration::ZERO;

    fn witness() -> Witness {
        Witness::new(None, Instant::now())
    }

    /// A look a tick after the last one: it has used so much of that, and runs just now, or sleeps.
    fn look(witness: &mut Witness, used: Duration, runs: bool) -> Doing {
        witness.learns(TICK, used, || runs)
    }

    /// Who is known to sleep, and has not run since, is not asked again. Fails, by the panic, if it is.
    #[test]
    fn who_sleeps_is_asked_once() {
        let mut witness = witness();
        assert_eq!(look(&mut witness, NONE, false), Blocks);
        for _ in 0..9 {
            assert_eq!(witness.learns(TICK, NONE, || panic!("it was asked before")), Blocks);
        }
        assert_eq!((witness.blocked, witness.computed, witness.waited), (10 * TICK, NONE, NONE));
    }

    /// Half of the time is enough, and a little less is not.
    #[test]
    fn who_used_a_core_for_half_of_the_time_computes() {
        let unasked = || panic!("its processor time says it");
        assert_eq!(witness().learns(TICK, TICK / 2, unasked), Computes);
        assert_eq!(witness().learns(NONE, TICK, unasked), Computes);
        let less = TICK / 2 - Duration::from_nanos(1);
        assert_eq!(look(&mut witness(), less, true), Waits);
        assert_eq!(look(&mut witness(), less, false), Dozes);
        // No time has passed, and none was used.
        assert_eq!(witness().learns(NONE, NONE, || true), Waits);
    }

    /// Who has no core, and has not computed for long in this poll, waits for one; and computes when it has.
    #[test]
    fn who_has_no_core_waits_until_it_has_computed_for_a_millisecond() {
        let (mut witness, bit) = (witness(), LONG / 4);
        for _ in 0..3 {
            assert_eq!(look(&mut witness, bit, true), Waits);
        }
        assert_eq!((witness.computed, witness.waited), (3 * bit, 3 * (TICK - bit)));
        for _ in 0..3 {
            assert_eq!(look(&mut witness, bit, true), Computes);
        }
        assert_eq!((witness.computed, witness.waited, witness.blocked), (6 * bit, 6 * (TICK - bit), NONE));
    }

    /// Who ran and is asleep is to be asleep at another look, too; then it blocks, and what it slept counts from there on. Fails
    /// if a lock that was taken for a moment is a reason for a thread.
    #[test]
    fn who_ran_and_sleeps_blocks_from_its_second_nap_on() {
        let (mut witness, bit) = (witness(), LONG / 10);
        assert_eq!(look(&mut witness, bit, false), Dozes);
        assert_eq!((witness.blocked, witness.computed, witness.waited), (NONE, bit, NONE));
        assert_eq!(look(&mut witness, bit, false), Blocks);
        assert_eq!((witness.blocked, witness.computed, witness.waited), (TICK - bit, 2 * bit, NONE));
        // It runs for a while: the first nap after that is one again.
        assert_eq!(look(&mut witness, TICK, true), Computes);
        assert_eq!(look(&mut witness, bit, false), Dozes);
        // Asleep ever since: no need for another one.
        assert_eq!(look(&mut witness, NONE, false), Blocks);
    }

    /// Who naps again and again blocks also where a look finds it running. Fails without that rule: by the millisecond that its
    /// moments add up to it would compute, or wait for a core, at each such look.
    #[test]
    fn who_naps_again_and_again_blocks_also_while_it_runs_for_a_moment() {
        let (mut witness, bit) = (witness(), LONG / 10);
        assert_eq!(look(&mut witness, bit, false), Dozes);
        // It has not blocked yet, as far as is known.
        assert_eq!(look(&mut witness, bit, true), Waits);
        for _ in 0..2 {
            assert_eq!(look(&mut witness, bit, false), Blocks);
        }
        for round in 0..30 {
            assert_eq!(look(&mut witness, bit, round % 3 == 0), Blocks, "{round}: {witness:?}");
        }
        assert!(witness.computed > LONG && witness.blocked > 5 * witness.computed, "{witness:?}");
        // It computes now, and goes on with that: what it was at before does not count.
        assert_eq!(look(&mut witness, TICK, true), Computes);
        assert_eq!(look(&mut witness, bit, true), Computes);
    }

    /// Who waits for its core for longer than it naps is not one that naps.
    #[test]
    fn who_has_no_core_for_longer_than_it_naps_waits() {
        let (mut witness, bit) = (witness(), LONG / 100);
        for _ in 0..3 {
            assert_eq!(look(&mut witness, bit, true), Waits);
        }
        assert_eq!(look(&mut witness, bit, false), Dozes);
        assert_eq!(look(&mut witness, bit, false), Blocks);
        for _ in 0..10 {
            assert_eq!(look(&mut witness, bit, true), Waits);
        }
        assert!(witness.waited > witness.blocked, "{witness:?}");
    }

    /// Again after an eighth of the time that it has slept, and no sooner. Fails if it is asked at each look.
    #[test]
    fn who_has_slept_for_long_is_asked_less_often() {
        let mut witness = witness();
        witness.doing = Some(Blocks);
        witness.blocked = 80 * TICK;
        let start = witness.looked;
        let here = ThreadState::here();
        assert_eq!(witness.look(here, start + 10 * TICK - Duration::from_nanos(1)), Blocks);
        assert_eq!((witness.looked, witness.blocked), (start, 80 * TICK), "it was not asked");
        let _ = witness.look(here, start + 10 * TICK);
        assert_eq!(witness.looked, start + 10 * TICK);
        // Who does not block is asked each time.
        witness.doing = Some(Waits);
        let _ = witness.look(here, start + 11 * TICK);
        assert_eq!(witness.looked, start + 11 * TICK);
    }
}

#[cfg(all(test, target_os = "linux", not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    /// A thread that does this until it is told to stop, and what a witness says of it, look by look.
    fn looks(does: impl Fn(&AtomicBool) + Send + 'static, mut until: impl FnMut(Doing, &Witness) -> bool) {
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            tell.send(ThreadState::here()).unwrap();
            does(&stopped);
        });
        let state = told.recv().unwrap();
        let mut witness = Witness::new(Some(state), Instant::now());
        assert!(witness.tells());
        let start = Instant::now();
        loop {
            thread::sleep(TICK);
            let doing = witness.look(state, Instant::now());
            if until(doing, &witness) {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{witness:?}");
        }
        stop.store(true, Relaxed);
        thread.thread().unpark();
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_sleeps_blocks() {
        let sleeps = |stop: &AtomicBool| {
            while !stop.load(Relaxed) {
                thread::park();
            }
        };
        let mut blocks = 0;
        looks(sleeps, |doing, witness| {
            blocks += usize::from(doing == Doing::Blocks);
            blocks >= 20 && witness.blocked > witness.computed
        });
    }

    #[test]
    fn a_thread_that_computes_never_blocks() {
        let computes = |stop: &AtomicBool| while !stop.load(Relaxed) {};
        looks(computes, |doing, witness| {
            assert_ne!(doing, Doing::Blocks);
            doing == Doing::Computes && witness.computed > 10 * TICK
        });
    }

    /// It computes in moments, and sleeps for the rest.
    #[test]
    fn a_thread_that_naps_blocks() {
        let naps = |stop: &AtomicBool| {
            while !stop.load(Relaxed) {
                thread::sleep(TICK / 4);
            }
        };
        looks(naps, |_, witness| witness.blocked > 10 * TICK && witness.computed < witness.blocked);
    }

    /// Two threads on one core: one of them has it, the other waits. What it is at is neither of the others, but for what it
    /// really computes.
    #[test]
    fn a_thread_without_a_core_does_not_block() {
        let Some(core) = pin_to_one_core() else { return };
        let rival = Arc::new(AtomicBool::new(false));
        let ended = rival.clone();
        let rivals: Vec<_> = (0..4)
            .map(|_| {
                let ended = ended.clone();
                thread::spawn(move || {
                    rustix::thread::sched_setaffinity(None, &core).unwrap();
                    while !ended.load(Relaxed) {}
                })
            })
            .collect();
        let computes = move |stop: &AtomicBool| {
            rustix::thread::sched_setaffinity(None, &core).unwrap();
            while !stop.load(Relaxed) {}
        };
        let mut waits = 0;
        looks(computes, |doing, witness| {
            assert_ne!(doing, Doing::Blocks, "{witness:?}");
            waits += u32::from(witness.waited > Duration::ZERO);
            waits > 20 && witness.waited > 5 * TICK
        });
        rival.store(true, Relaxed);
        rivals.into_iter().for_each(|rival| rival.join().unwrap());
    }

    /// A core that this process may use.
    fn pin_to_one_core() -> Option<rustix::thread::CpuSet> {
        let all = rustix::thread::sched_getaffinity(None).ok()?;
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|core| all.is_set(*core))?;
        let mut one = rustix::thread::CpuSet::new();
        one.set(first);
        Some(one)
    }
}
