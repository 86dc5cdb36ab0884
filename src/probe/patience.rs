//! [`Patience`]: decides which of the threads that were told to return are stuck.
//!
//! Wall time is no witness: on a machine that others use, a thread may wait for a core for longer than the
//! caller should wait for a task that blocks; and a thread that drops ten thousand futures takes long, but is
//! not stuck. So a thread that makes progress is given the whole time again. For a thread that makes none,
//! this table decides:
//!
//! | what the thread has done since its last progress | it is stuck after |
//! |---|---|
//! | slept, or used processor time, or both | [`GRACE`] of that; [`OUTSIDE_GRACE`] if it is in no user code |
//! | waited for a core | [`WITHOUT_A_CORE`] of wall time |
//! | unknown, because the system does not tell | [`GRACE`] of wall time |

use std::time::Duration;

use super::thread_state::ThreadState;
use crate::sync::{Instant, thread};

/// How long a thread that was told to return may block, or compute, before it is stuck.
pub(crate) const GRACE: Duration = Duration::from_millis(25);
/// The same for a thread that is in no user code, as far as is known: if it sleeps there, it most likely
/// waits for a lock whose owner has no core.
pub(crate) const OUTSIDE_GRACE: Duration = Duration::from_millis(500);
/// How long to wait for a thread that neither blocks nor computes, and makes no progress.
pub(crate) const WITHOUT_A_CORE: Duration = Duration::from_secs(5);

/// Upper bound of the time between two looks that counts as asleep, for a thread that slept at both looks and
/// ran between them.
const NAP: Duration = Duration::from_millis(2);

/// A thread, and a way to learn what it does.
#[derive(Clone, Debug)]
pub(crate) struct KnownThread {
    pub(crate) thread: thread::Thread,
    state: ThreadState,
}

impl KnownThread {
    /// Returns the current thread.
    pub(crate) fn here() -> Self {
        Self { thread: thread::current(), state: ThreadState::here() }
    }

    pub(crate) fn id(&self) -> thread::ThreadId {
        self.thread.id()
    }

    /// Returns whether the thread is asleep. If the system does not tell, the thread counts as asleep.
    fn is_asleep(&self) -> bool {
        !self.state.is_running().unwrap_or(false)
    }
}

/// The observations of the threads that were told to return.
#[derive(Debug, Default)]
pub(crate) struct Patience(Vec<ThreadRecord>);

/// The observations of one thread since its last progress.
#[derive(Debug)]
struct ThreadRecord {
    thread: thread::ThreadId,
    /// The caller's number for its progress.
    got_to: u64,
    /// When it was first seen there, and seen last.
    since: Instant,
    looked: Instant,
    /// The processor time that it had used at its last progress, and at the last look.
    at_first: Duration,
    so_far: Duration,
    /// Whether it slept at the last look.
    is_asleep: bool,
    /// For how long it slept, as far as that is sure.
    slept: Duration,
}

impl ThreadRecord {
    /// Begins the record of a thread that was seen to get to `got_to`. Asks the system for its processor
    /// time, and whether it sleeps.
    fn new(known: &KnownThread, got_to: u64, now: Instant) -> Self {
        let used = known.state.processor_time().unwrap_or_default();
        Self {
            thread: known.id(),
            got_to,
            since: now,
            looked: now,
            at_first: used,
            so_far: used,
            is_asleep: known.is_asleep(),
            slept: Duration::ZERO,
        }
    }

    /// Adds what the thread did since the last look. Returns whether the thread slept and computed for
    /// `grace` in total without progress, and is not just awake again; or made none for [`WITHOUT_A_CORE`].
    fn look_again(&mut self, known: &KnownThread, grace: Duration, now: Instant) -> bool {
        let so_far = known.state.processor_time().unwrap_or_default();
        let (used, elapsed) =
            (so_far.saturating_sub(self.so_far), now.saturating_duration_since(self.looked));
        let is_asleep = known.is_asleep();
        if is_asleep && self.is_asleep {
            // A thread that has run meanwhile may have waited for a core most of the time.
            self.slept += if used.is_zero() { elapsed } else { elapsed.min(NAP) };
        }
        (self.looked, self.so_far, self.is_asleep) = (now, so_far, is_asleep);
        let computed = so_far.saturating_sub(self.at_first);
        // A thread that is awake again is on its way, and may have no core.
        (is_asleep || computed >= grace) && self.slept + computed >= grace
            || now.saturating_duration_since(self.since) >= WITHOUT_A_CORE
    }
}

impl Patience {
    /// Observes the thread, and returns whether it is stuck, as far as is known now; false at the first call
    /// for a thread, and when it has made progress since the last call. `got_to` is a number that changes
    /// whenever the thread makes progress; `grace` is how long it may sleep or compute where it is.
    pub(crate) fn check_stuck(
        &mut self,
        known: &KnownThread,
        got_to: u64,
        grace: Duration,
        now: Instant,
    ) -> bool {
        let Some(record) = self.0.iter_mut().find(|record| record.thread == known.id()) else {
            self.0.push(ThreadRecord::new(known, got_to, now));
            return false;
        };
        if record.got_to != got_to {
            *record = ThreadRecord::new(known, got_to, now);
            return false;
        }
        record.look_again(known, grace, now)
    }
}

#[cfg(all(test, target_os = "linux", not(any(paceline_loom, paceline_shuttle, miri))))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, mpsc};

    use super::*;

    const LOOK: Duration = Duration::from_millis(2);

    /// Observes a thread that runs `does` until it is stuck, or `limit` has passed; then tells it to stop.
    /// Returns after which time it was stuck.
    fn lasts(
        does: impl Fn(&AtomicBool) + Send + 'static,
        limit: Duration,
        got_to: impl Fn() -> u64,
    ) -> Option<Duration> {
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            tell.send(KnownThread::here()).unwrap();
            does(&stopped);
        });
        let known = told.recv().unwrap();
        let (mut patience, start) = (Patience::default(), Instant::now());
        let is_over = loop {
            if patience.check_stuck(&known, got_to(), GRACE, Instant::now()) {
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

    /// No limit.
    const LONG: Duration = Duration::MAX;

    #[test]
    fn a_thread_that_blocks_or_computes_is_stuck_after_the_grace() {
        for does in [sleeps, computes] {
            let took = lasts(does, LONG, || 0).expect("it is found");
            assert!(took >= GRACE, "{took:?}");
        }
    }

    #[test]
    fn a_thread_that_naps_is_stuck() {
        let naps = |stop: &AtomicBool| {
            while !stop.load(Relaxed) {
                thread::sleep(LOOK / 8);
            }
        };
        assert!(lasts(naps, LONG, || 0).is_some());
    }

    /// However long that takes.
    #[test]
    fn a_thread_that_makes_progress_is_not_stuck() {
        for does in [sleeps, computes] {
            let number = std::cell::Cell::new(0);
            let got_to = || number.replace(number.get() + 1);
            assert_eq!(lasts(does, 8 * GRACE, got_to), None);
        }
    }
}
