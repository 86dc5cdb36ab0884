//! [`Pausable`]: a clock that can be paused. Then it moves when it is told to, or when there is nothing else to do.
//!
//! # Nothing to do
//!
//! A thread in a `block_on` of the runtime calls [`Pausable::idles`] before it sleeps: when it has found no task, its own future was
//! not woken, and the poller, which it has asked without waiting, had nothing. (paceline's `on_thread_park`: called once for each time
//! that the thread had something to do.) Then the clock moves to what is waited for next, unless something [holds](Pausable::hold) it.
//!
//! *Not too early.* What was woken before that moment was found. So was a source that was ready. What other threads do after it is a
//! race with the clock, with one exception, as they are waited for: closures that block. Such a closure holds the clock until it
//! has told whoever waits for it; but that may happen between the thread's look for tasks and this call, and then nothing holds the
//! clock, although there is something to do. So the first call after something was let go moves nothing. It has the thread look once
//! more, which happens after that, and finds it.
//!
//! *It does not hang.* Whatever has changed so that the clock may move, and each time it has, the thread is [nudged](nudge): it has
//! something to do, if it slept, and calls again when it is done. Only one nudge is under way at a time.
//!
//! Where several threads are in `block_on`s of one such runtime, a call by one of them does not mean that the others have nothing to
//! do. They race with the clock, as the futures of all but one of them do in tokio.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::entries::{Entries, Key, Tick};

/// Some clock of the process was paused once. Before that, all say the same, and nobody need look whose counts.
pub(super) static EVER_PAUSED: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
pub(super) struct Pausable {
    start: Instant,
    runtime: OnceLock<paceline::Handle>,
    /// Locked while nobody's code runs: no waker is cloned, called or dropped under it.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    time: Time,
    entries: Entries,
    /// What is under way that may bring work.
    holds: usize,
    /// Something of that was over, and the thread has not looked since.
    is_released: bool,
    is_nudged: bool,
}

#[derive(Clone, Copy, Debug)]
enum Time {
    /// It was so late on this clock when it was so late on the system's.
    Runs {
        here: Instant,
        system: Instant,
    },
    Paused(Instant),
}

/// When a deadline comes that has not passed.
pub(super) enum Ahead {
    /// Nobody knows.
    Paused,
    /// At this time of the system's clock, if not before.
    Runs(Instant),
}

impl Pausable {
    pub(super) fn new(is_paused: bool) -> Self {
        let start = Instant::now();
        let time = if is_paused { Time::Paused(start) } else { Time::Runs { here: start, system: start } };
        EVER_PAUSED.fetch_or(is_paused, Ordering::Release);
        let entries = Entries::default();
        let state = State { time, entries, holds: 0, is_released: false, is_nudged: false };
        Self { start, runtime: OnceLock::new(), state: Mutex::new(state) }
    }

    pub(super) fn is_of(&self, runtime: paceline::Handle) {
        let _ = self.runtime.set(runtime);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Instant {
        self.lock().time.now()
    }

    /// False if it is paused already.
    pub(super) fn pause(&self) -> bool {
        EVER_PAUSED.store(true, Ordering::Release);
        let mut state = self.lock();
        let did_run = matches!(state.time, Time::Runs { .. });
        state.time = Time::Paused(state.time.now());
        self.changed(state);
        did_run
    }

    /// False if it is not paused.
    pub(super) fn resume(&self) -> bool {
        let mut state = self.lock();
        let Time::Paused(here) = state.time else { return false };
        state.time = Time::Runs { here, system: Instant::now() };
        drop(state);
        self.wake_all();
        true
    }

    /// False if it is not paused.
    pub(super) fn advance(&self, duration: Duration) -> bool {
        let state = self.lock();
        let Time::Paused(now) = state.time else { return false };
        self.moves(state, now + duration);
        true
    }

    fn moves(&self, mut state: MutexGuard<'_, State>, now: Instant) {
        state.time = Time::Paused(now);
        let due = state.entries.take_due(self.tick_at(now));
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }

    /// Whoever waits looks again, at what has changed.
    pub(super) fn wake_all(&self) {
        let all = self.lock().entries.take_all();
        all.into_iter().for_each(Waker::wake);
    }

    pub(super) fn hold(&self) {
        self.lock().holds += 1;
    }

    pub(super) fn let_go(&self) {
        let mut state = self.lock();
        state.holds -= 1;
        state.is_released = true;
        self.changed(state);
    }

    /// The thread has nothing to do: moves the clock, if it may.
    pub(super) fn idles(&self) {
        let mut state = self.lock();
        state.is_nudged = false;
        let (Time::Paused(now), Some(next)) = (state.time, state.entries.first()) else { return };
        if !state.may_move() {
            return;
        }
        if !mem::take(&mut state.is_released) {
            let ahead = Duration::from_millis(next.saturating_sub(self.tick_at(now)));
            self.moves(state, now + ahead);
            state = self.lock();
        }
        self.changed(state);
    }

    /// If the clock may move now, the thread is to call [`idles`](Self::idles).
    fn changed(&self, mut state: MutexGuard<'_, State>) {
        let is_new = state.may_move() && !mem::replace(&mut state.is_nudged, true);
        drop(state);
        if is_new {
            self.runtime.get().into_iter().for_each(nudge);
        }
    }

    fn tick_of(&self, deadline: Instant) -> Tick {
        let nanos = deadline.saturating_duration_since(self.start).as_nanos().div_ceil(1_000_000);
        Tick::try_from(nanos).unwrap_or(Tick::MAX)
    }

    fn tick_at(&self, now: Instant) -> Tick {
        Tick::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(Tick::MAX)
    }

    pub(super) fn key(&self, deadline: Instant) -> Key {
        let due = self.tick_of(deadline);
        self.lock().entries.key(due)
    }

    /// `None` if the deadline, which is that of the key, has passed. Else whoever waits is woken when it has come, or when it is to come
    /// at another time; while the clock runs, that takes an alarm.
    pub(super) fn wait(&self, key: Key, deadline: Instant, waker: &Waker) -> Option<Ahead> {
        let waker = waker.clone();
        let mut state = self.lock();
        let ahead = match state.time {
            Time::Paused(now) if key.due <= self.tick_at(now) => {
                drop(state);
                return None;
            }
            Time::Paused(_) => Ahead::Paused,
            Time::Runs { here, system } => {
                let ahead = deadline.saturating_duration_since(here);
                Ahead::Runs(system.checked_add(ahead).unwrap_or(deadline))
            }
        };
        let old = state.entries.put(key, waker);
        self.changed(state);
        drop(old);
        Some(ahead)
    }

    /// Whoever waits by one key waits by the other from now on, unless he was woken; or is, if that is due.
    pub(super) fn moved(&self, from: Key, to: Key) {
        let mut state = self.lock();
        let Some(waker) = state.entries.remove(from) else { return };
        match state.time {
            Time::Paused(now) if to.due <= self.tick_at(now) => {
                drop(state);
                waker.wake();
            }
            _ => {
                state.entries.put(to, waker);
                self.changed(state);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.lock().entries.waiting()
    }

    pub(super) fn forget(&self, key: Key) {
        let waker = self.lock().entries.remove(key);
        drop(waker);
    }

    pub(super) fn has_passed(&self, deadline: Instant) -> bool {
        match self.lock().time {
            Time::Paused(now) => self.tick_of(deadline) <= self.tick_at(now),
            runs @ Time::Runs { .. } => deadline <= runs.now(),
        }
    }
}

impl Time {
    fn now(self) -> Instant {
        match self {
            Time::Runs { here, system } => here + system.elapsed(),
            Time::Paused(here) => here,
        }
    }
}

impl State {
    /// It is paused, something waits for it, and nothing is under way that may bring work.
    fn may_move(&self) -> bool {
        matches!(self.time, Time::Paused(_)) && self.holds == 0 && self.entries.first().is_some()
    }
}

/// Gives the runtime something to do, which is to do nothing.
fn nudge(runtime: &paceline::Handle) {
    runtime.spawn(async {}).detach();
}
