//! [`Witness`]: the record of a thread that makes no progress, for the deputy and for the end of a runtime.
//!
//! A task that has been polled for two looks may do one of three things, and wall time does not tell which:
//!
//! | what | known by | what helps |
//! |---|---|---|
//! | it *blocks* in a system call or a page fault | no processor time used; its state | another thread |
//! | it *computes* | processor time used | at most one thread that serves others meanwhile |
//! | it *waits* for a core, which other threads have | neither | nothing |
//!
//! Asking for the processor time costs a third of a microsecond; asking `/proc` for its state costs some six.
//! So the state is asked only of a thread that has used little time since the last look, and not again of a
//! thread that is known to block and has used none since.

use std::mem;
use std::time::Duration;

use super::thread_state::ThreadState;
use crate::sync::Instant;

/// Processor time after which a task counts as one that computes, even if it waits for its core at the
/// moment. A quick task that has lost its core has used less.
const COMPUTES_AFTER: Duration = Duration::from_millis(1);
/// How long the end of a runtime waits for a thread that makes no progress, whatever it does.
pub(crate) const WITHOUT_A_CORE: Duration = Duration::from_secs(5);

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// The thread sleeps. A thread whose state the system does not tell counts as blocked, too.
    Blocks,
    /// The thread uses a core.
    Computes,
    /// The thread would use a core if it had one.
    Waits,
    /// The thread has used a core, and sleeps at the moment. Another look decides whether it is blocked.
    Dozes,
}

/// The observations of a thread since it began something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    looked: Instant,
    processor_time: Option<Duration>,
    doing: Option<Doing>,
    /// Whether the thread was asleep at a look, but had run before that, and has not computed since.
    dozed: bool,
    /// How long the thread has blocked in total, computed, and waited, as far as that was seen.
    pub(crate) blocked: Duration,
    pub(crate) computed: Duration,
    pub(crate) waited: Duration,
}

impl Witness {
    /// Begins the record of a thread that has begun something since the last look, and asks for its processor
    /// time. `thread` is `None` for a thread that sleeps, and has to wake up before it need be asked.
    pub(crate) fn new(thread: Option<ThreadState>, now: Instant) -> Self {
        let [blocked, computed, waited] = [Duration::ZERO; 3];
        let processor_time = thread.and_then(ThreadState::processor_time);
        Self { looked: now, processor_time, doing: None, dozed: false, blocked, computed, waited }
    }

    pub(crate) fn blocks(&self) -> bool {
        self.doing == Some(Doing::Blocks)
    }

    /// Returns whether the last look found the thread in a state that may last.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.doing, Some(Doing::Blocks | Doing::Computes))
    }

    /// Returns whether the thread, which was told to return, is stuck: it has slept and computed for `grace`
    /// in total, and is not just awake again; or it made no progress for [`WITHOUT_A_CORE`]. Wall time alone
    /// is no witness, because a thread may wait for a core for longer than `grace`.
    pub(crate) fn is_stuck(&self, grace: Duration) -> bool {
        let active = self.blocked + self.computed;
        active >= grace && (self.blocks() || self.computed >= grace) || active + self.waited >= WITHOUT_A_CORE
    }

    /// Returns whether the system tells anything of the thread.
    pub(crate) fn tells(&self) -> bool {
        self.processor_time.is_some()
    }

    /// Returns the processor time that the thread used between the last look of `before` and this witness, if
    /// both looks asked for it.
    pub(crate) fn used_since(&self, before: &Self) -> Option<Duration> {
        Some(self.processor_time?.saturating_sub(before.processor_time?))
    }

    /// Observes the thread, which was still in the same thing at `now`, and returns what it does. The
    /// processor time that the thread has used since the last look decides, and the thread's state if that
    /// time is short. A state that the system does not tell counts as asleep. Adds the time since the last
    /// look to the sums, except the sleep of a thread that dozes. A thread that blocks is not asked again
    /// before an eighth of the time that it has blocked has passed: until then the result is `Blocks`, and no
    /// sum changes.
    pub(crate) fn look(&mut self, thread: ThreadState, now: Instant) -> Doing {
        let elapsed = now.saturating_duration_since(self.looked);
        // A thread that has slept for long may sleep for longer: hundreds of them are not asked a thousand
        // times a second.
        if self.blocks() && elapsed < self.blocked / 8 {
            return Doing::Blocks;
        }
        let before = self.processor_time;
        (self.looked, self.processor_time) = (now, thread.processor_time());
        // Not what the thread has used since `now` was read: it may have been in something else by then.
        let used = match (before, self.processor_time) {
            (Some(before), Some(after)) => after.saturating_sub(before).min(elapsed),
            _ => Duration::ZERO,
        };
        self.conclude(elapsed, used, || thread.is_running().unwrap_or(false))
    }

    /// Concludes what the thread does from the processor time that it has used since the last look, `elapsed`
    /// ago, and adds the time to the sums. Calls `is_running` only if that does not tell.
    fn conclude(&mut self, elapsed: Duration, used: Duration, is_running: impl FnOnce() -> bool) -> Doing {
        let doing = match self.doing {
            // The thread has not run since it was found asleep.
            Some(Doing::Blocks) if used.is_zero() => Doing::Blocks,
            _ if used >= elapsed / 2 && !used.is_zero() => {
                self.dozed = false;
                Doing::Computes
            }
            // A thread that ran, and sleeps at the moment, may only wait for a lock for a moment: it has to
            // be asleep once more.
            _ if !is_running() => {
                let blocks = used.is_zero() || mem::replace(&mut self.dozed, true);
                if blocks { Doing::Blocks } else { Doing::Dozes }
            }
            // A thread that naps again and again runs now and then, but does not get on.
            _ if self.dozed && self.blocked > self.computed + self.waited => Doing::Blocks,
            _ if self.computed + used >= COMPUTES_AFTER => Doing::Computes,
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

/// The rules, look by look.
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod rules {
    use super::Doing::{Blocks, Computes, Dozes, Waits};
    use super::*;

    const TICK: Duration = Duration::from_millis(1);
    const NONE: Duration = Duration::ZERO;

    fn witness() -> Witness {
        Witness::new(None, Instant::now())
    }

    /// Looks a tick after the last look: the thread has used this much of it, and runs at the moment, or
    /// sleeps.
    fn look(witness: &mut Witness, used: Duration, runs: bool) -> Doing {
        witness.conclude(TICK, used, || runs)
    }

    /// A thread that is known to sleep, and has not run since, is not asked again. Fails, by the panic, if it
    /// is.
    #[test]
    fn a_thread_that_sleeps_is_asked_once() {
        let mut witness = witness();
        assert_eq!(look(&mut witness, NONE, false), Blocks);
        for _ in 0..9 {
            assert_eq!(witness.conclude(TICK, NONE, || panic!("it was asked before")), Blocks);
        }
        assert_eq!((witness.blocked, witness.computed, witness.waited), (10 * TICK, NONE, NONE));
    }

    /// Half of the time is enough, and a little less is not.
    #[test]
    fn a_thread_that_used_a_core_for_half_of_the_time_computes() {
        let unasked = || panic!("its processor time says it");
        assert_eq!(witness().conclude(TICK, TICK / 2, unasked), Computes);
        assert_eq!(witness().conclude(NONE, TICK, unasked), Computes);
        let less = TICK / 2 - Duration::from_nanos(1);
        assert_eq!(look(&mut witness(), less, true), Waits);
        assert_eq!(look(&mut witness(), less, false), Dozes);
        // No time has passed, and none was used.
        assert_eq!(witness().conclude(NONE, NONE, || true), Waits);
    }

    /// A thread without a core that has not computed for long in this poll waits for a core; after a
    /// millisecond of processor time it computes.
    #[test]
    fn a_thread_without_a_core_waits_until_it_has_computed_for_a_millisecond() {
        let (mut witness, bit) = (witness(), COMPUTES_AFTER / 4);
        for _ in 0..3 {
            assert_eq!(look(&mut witness, bit, true), Waits);
        }
        assert_eq!((witness.computed, witness.waited), (3 * bit, 3 * (TICK - bit)));
        for _ in 0..3 {
            assert_eq!(look(&mut witness, bit, true), Computes);
        }
        assert_eq!((witness.computed, witness.waited, witness.blocked), (6 * bit, 6 * (TICK - bit), NONE));
    }

    /// A thread that ran and is asleep has to be asleep at another look, too; then it blocks, and its sleep
    /// counts from there on. Fails if a lock that was taken for a moment is a reason to start a thread.
    #[test]
    fn a_thread_that_ran_and_sleeps_blocks_from_its_second_nap_on() {
        let (mut witness, bit) = (witness(), COMPUTES_AFTER / 10);
        assert_eq!(look(&mut witness, bit, false), Dozes);
        assert_eq!((witness.blocked, witness.computed, witness.waited), (NONE, bit, NONE));
        assert_eq!(look(&mut witness, bit, false), Blocks);
        assert_eq!((witness.blocked, witness.computed, witness.waited), (TICK - bit, 2 * bit, NONE));
        // The thread runs for a while: the first nap after that counts as a nap again.
        assert_eq!(look(&mut witness, TICK, true), Computes);
        assert_eq!(look(&mut witness, bit, false), Dozes);
        // Asleep since then: no second look is needed.
        assert_eq!(look(&mut witness, NONE, false), Blocks);
    }

    /// A thread that naps again and again blocks also if a look finds it running. Fails without that rule:
    /// once its moments add up to a millisecond, the thread would compute, or wait for a core, at each such
    /// look.
    #[test]
    fn a_thread_that_naps_again_and_again_blocks_also_while_it_runs_for_a_moment() {
        let (mut witness, bit) = (witness(), COMPUTES_AFTER / 10);
        assert_eq!(look(&mut witness, bit, false), Dozes);
        // The thread has not blocked yet, as far as is known.
        assert_eq!(look(&mut witness, bit, true), Waits);
        for _ in 0..2 {
            assert_eq!(look(&mut witness, bit, false), Blocks);
        }
        for round in 0..30 {
            assert_eq!(look(&mut witness, bit, round % 3 == 0), Blocks, "{round}: {witness:?}");
        }
        assert!(witness.computed > COMPUTES_AFTER && witness.blocked > 5 * witness.computed, "{witness:?}");
        // The thread computes now, and continues: what it did before does not count.
        assert_eq!(look(&mut witness, TICK, true), Computes);
        assert_eq!(look(&mut witness, bit, true), Computes);
    }

    /// A thread that waits for its core for longer than it naps does not nap.
    #[test]
    fn a_thread_without_a_core_for_longer_than_it_naps_waits() {
        let (mut witness, bit) = (witness(), COMPUTES_AFTER / 100);
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

    /// A thread that was told to return is stuck after it has slept and computed for the grace. The time
    /// without a core does not count, but is limited. Fails if wall time decides.
    #[test]
    fn a_thread_is_stuck_after_the_grace() {
        let grace = 25 * TICK;
        let stuck_after = |used: fn(u32) -> Duration, runs: fn(u32) -> bool| {
            let mut witness = witness();
            let is_stuck = |tick: &u32| {
                let _ = look(&mut witness, used(*tick), runs(*tick));
                witness.is_stuck(grace)
            };
            (1..).find(is_stuck).map(|ticks| ticks * TICK)
        };
        assert_eq!(stuck_after(|_| NONE, |_| false), Some(grace), "it sleeps");
        assert_eq!(stuck_after(|_| TICK, |_| true), Some(grace), "it computes");
        let a_tenth = |tick| if tick % 10 == 0 { TICK } else { NONE };
        assert_eq!(stuck_after(a_tenth, |_| true), Some(10 * grace), "it has a tenth of a core");
        assert_eq!(stuck_after(|_| NONE, |_| true), Some(WITHOUT_A_CORE), "it has no core");
        let runs_once = |tick| if tick == 25 { TICK / 10 } else { NONE };
        assert_eq!(stuck_after(runs_once, |tick| tick > 24), Some(WITHOUT_A_CORE), "it is awake again");
    }

    /// The thread is asked again after an eighth of the time that it has slept, and no sooner. Fails if it is
    /// asked at each look.
    #[test]
    fn a_thread_that_has_slept_for_long_is_asked_less_often() {
        let mut witness = witness();
        witness.doing = Some(Blocks);
        witness.blocked = 80 * TICK;
        let start = witness.looked;
        let here = ThreadState::here();
        assert_eq!(witness.look(here, start + 10 * TICK - Duration::from_nanos(1)), Blocks);
        assert_eq!((witness.looked, witness.blocked), (start, 80 * TICK), "it was not asked");
        let _ = witness.look(here, start + 10 * TICK);
        assert_eq!(witness.looked, start + 10 * TICK);
        // A thread that does not block is asked each time.
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

    /// Runs `does` on a thread until it is told to stop, and passes what a witness says of it, look by look.
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
        loop {
            thread::sleep(TICK);
            let doing = witness.look(state, Instant::now());
            if until(doing, &witness) {
                break;
            }
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

    /// The thread computes in moments, and sleeps for the rest.
    #[test]
    fn a_thread_that_naps_blocks() {
        let naps = |stop: &AtomicBool| {
            while !stop.load(Relaxed) {
                thread::sleep(TICK / 4);
            }
        };
        looks(naps, |_, witness| witness.blocked > 10 * TICK && witness.computed < witness.blocked);
    }

    /// Several threads on one core: one of them has it, the others wait. Such a thread does not block, and
    /// computes only for the time that it really has the core. Measures what the system says of it; how that
    /// is judged is exact in the `rules` above.
    #[test]
    #[ignore = "timed: threads that share a core wait for it"]
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

    /// Returns a core that this process may use.
    fn pin_to_one_core() -> Option<rustix::thread::CpuSet> {
        let all = rustix::thread::sched_getaffinity(None).ok()?;
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|core| all.is_set(*core))?;
        let mut one = rustix::thread::CpuSet::new();
        one.set(first);
        Some(one)
    }

    /// The clock of a look is read before the thread is found in the same thing. Fails if what the thread has
    /// used since then counts: it may have been in something else.
    #[test]
    fn no_more_is_counted_than_has_passed() {
        let state = ThreadState::here();
        let mut witness = Witness::new(Some(state), Instant::now());
        let begun = state.processor_time().unwrap();
        while state.processor_time().unwrap() - begun < 2 * TICK {}
        assert_eq!(witness.look(state, witness.looked + TICK), Doing::Computes);
        assert_eq!(
            (witness.computed, witness.blocked, witness.waited),
            (TICK, Duration::ZERO, Duration::ZERO)
        );
    }
}
