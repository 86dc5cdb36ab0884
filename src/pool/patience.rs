//! [`Patience`]: with threads that were told to come back, until each has, or is known to be stuck.
//!
//! The clock on the wall is no witness: on a machine that others use, a thread may wait for a core for longer than anybody is to wait
//! for a task that blocks; and one that drops ten thousand futures is at it for long, and not stuck at all. So whoever gets
//! any further is given the whole time again, and of who does not, this is asked:
//!
//! | what it has done since it got any further | it is stuck after |
//! |---|---|
//! | slept, or used processor time, or both | [`GRACE`] of that; [`OUTSIDE`] where it is in no code of users' |
//! | waited for a core | [`WITHOUT_A_CORE`] on the wall |
//! | nobody tells | [`GRACE`] on the wall |

use std::time::Duration;

use super::thread_state::ThreadState;
use crate::sync::{Instant, thread};

/// How long one that was told to come back may block, or compute, before it is stuck.
pub(super) const GRACE: Duration = Duration::from_millis(25);
/// The same for one that is in no code of users', as far as is known: who sleeps there, most likely does in a lock whose owner has no core.
pub(super) const OUTSIDE: Duration = Duration::from_millis(500);
/// How long one is waited for that does neither, nor gets any further.
pub(super) const WITHOUT_A_CORE: Duration = Duration::from_secs(5);

/// How much of the time between two looks one counts as asleep that was so at both, and has run between them.
const NAP: Duration = Duration::from_millis(2);

/// A thread, and a way to learn what it does.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(super) thread: thread::Thread,
    state: ThreadState,
}

impl Who {
    /// The current thread.
    pub(crate) fn here() -> Self {
        Self { thread: thread::current(), state: ThreadState::here() }
    }

    pub(super) fn id(&self) -> thread::ThreadId {
        self.thread.id()
    }

    /// Where nobody tells, it is taken to be.
    fn is_asleep(&self) -> bool {
        !self.state.is_running().unwrap_or(false)
    }
}

/// What is known of threads that were told to come back.
#[derive(Debug, Default)]
pub(super) struct Patience(Vec<Known>);

/// Since it got any further.
#[derive(Debug)]
struct Known {
    thread: thread::ThreadId,
    got_to: u64,
    since: Instant,
    looked: Instant,
    /// Processor time that it had used then, and at the last look.
    at_first: Duration,
    so_far: Duration,
    /// At the last look.
    is_asleep: bool,
    /// For how long it was, as far as that is sure.
    slept: Duration,
}

impl Known {
    fn new(who: &Who, got_to: u64, now: Instant) -> Self {
        let used = who.state.processor_time().unwrap_or_default();
        Self {
            thread: who.id(),
            got_to,
            since: now,
            looked: now,
            at_first: used,
            so_far: used,
            is_asleep: who.is_asleep(),
            slept: Duration::ZERO,
        }
    }

    fn is_stuck(&mut self, who: &Who, grace: Duration, now: Instant) -> bool {
        let so_far = who.state.processor_time().unwrap_or_default();
        let (used, elapsed) =
            (so_far.saturating_sub(self.so_far), now.saturating_duration_since(self.looked));
        let is_asleep = who.is_asleep();
        if is_asleep && self.is_asleep {
            // Who has run meanwhile may have waited for a core for the most of it.
            self.slept += if used.is_zero() { elapsed } else { elapsed.min(NAP) };
        }
        (self.looked, self.so_far, self.is_asleep) = (now, so_far, is_asleep);
        let computed = so_far.saturating_sub(self.at_first);
        // Who is awake again is on its way, and may have no core.
        (is_asleep || computed >= grace) && self.slept + computed >= grace
            || now.saturating_duration_since(self.since) >= WITHOUT_A_CORE
    }
}

impl Patience {
    /// Whether it is over with this thread: it is stuck, for all that is known now. `got_to` is another number whenever the
    /// thread has got any further; `grace` is how long it may sleep or compute where it is.
    pub(super) fn is_over(&mut self, who: &Who, got_to: u64, grace: Duration, now: Instant) -> bool {
        let Some(known) = self.0.iter_mut().find(|known| known.thread == who.id()) else {
            self.0.push(Known::new(who, got_to, now));
            return false;
        };
        if known.got_to != got_to {
            *known = Known::new(who, got_to, now);
            return false;
        }
        known.is_stuck(who, grace, now)
    }
}

#[cfg(all(test, target_os = "linux", not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, mpsc};

    use super::*;

    const LOOK: Duration = Duration::from_millis(2);

    /// Looks at a thread that does this until patience is over with it, or `limit` is; then tells it to stop. Returns how long it took.
    fn lasts(
        does: impl Fn(&AtomicBool) + Send + 'static,
        limit: Duration,
        got_to: impl Fn() -> u64,
    ) -> Option<Duration> {
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            tell.send(Who::here()).unwrap();
            does(&stopped);
        });
        let who = told.recv().unwrap();
        let (mut patience, start) = (Patience::default(), Instant::now());
        let is_over = loop {
            if patience.is_over(&who, got_to(), GRACE, Instant::now()) {
                break Some(start.elapsed());
            }
            if start.elapsed() > limit {
                break None;
            }
            thread::sleep(LOOK);
        };
        stop.store(true, Relaxed);
        thread.thread().unpark();
        thread.join().unwrap();
        is_over
    }

    fn sleeps(stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            thread::park();
        }
    }

    fn computes(stop: &AtomicBool) {
        while !stop.load(Relaxed) {}
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn who_blocks_or_computes_is_stuck_after_the_grace() {
        for does in [sleeps, computes] {
            let took = lasts(does, LONG, || 0).expect("it is found");
            assert!(took >= GRACE, "{took:?}");
        }
    }

    #[test]
    fn who_naps_is_stuck() {
        let naps = |stop: &AtomicBool| {
            while !stop.load(Relaxed) {
                thread::sleep(LOOK / 8);
            }
        };
        assert!(lasts(naps, LONG, || 0).is_some());
    }

    /// However long that takes.
    #[test]
    fn who_gets_any_further_is_not_stuck() {
        for does in [sleeps, computes] {
            let number = std::cell::Cell::new(0);
            let got_to = || number.replace(number.get() + 1);
            assert_eq!(lasts(does, 8 * GRACE, got_to), None);
        }
    }

    /// It has a tenth of a core or so. Fails if the wall decides.
    #[test]
    fn who_waits_for_a_core_is_not_stuck_before_it_has_used_one() {
        let all = rustix::thread::sched_getaffinity(None).unwrap();
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|core| all.is_set(*core)).unwrap();
        let mut core = rustix::thread::CpuSet::new();
        core.set(first);
        let rival = move |stop: &AtomicBool| {
            rustix::thread::sched_setaffinity(None, &core).unwrap();
            computes(stop);
        };
        let ended = Arc::new(AtomicBool::new(false));
        let rivals = [(); 8].map(|()| {
            let ended = ended.clone();
            thread::spawn(move || rival(&ended))
        });
        let took = lasts(rival, LONG, || 0).expect("it computes");
        assert!(took > 3 * GRACE, "{took:?}");
        ended.store(true, Relaxed);
        rivals.into_iter().for_each(|rival| rival.join().unwrap());
    }
}
