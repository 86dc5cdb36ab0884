//! [`Pausable`]: a clock that can be paused. A paused clock moves when it is told to, or when the runtime is
//! idle.
//!
//! # Idle
//!
//! A thread in a `block_on` of the runtime calls [`Pausable::idles`] when it has found no task, and its own
//! future was not woken. (That is paceline's `on_thread_park`: called each time that the thread has polled
//! all tasks.) If the poller, asked without waiting, has no events, the clock moves to the next deadline,
//! unless an activity [holds](Pausable::hold) it.
//!
//! *Not too early.* Tasks that were woken before that moment were found. So was a source that was ready, and
//! then the call moves nothing: it makes the thread poll the tasks that its event has woken, and look again.
//! Later actions of other threads race with the clock, with one exception, for which the clock waits:
//! closures that block. Such a closure holds the clock until it has woken its waiting task; but that may
//! happen between the thread's look for tasks and this call, and then nothing holds the clock, although a
//! task is ready. So the first call after a release moves nothing. It makes the thread look once more, which
//! happens after the release and finds the task.
//!
//! *No hang.* After every change that allows the clock to move, the thread is [nudged](nudge): if it slept,
//! it has something to do, and calls again when it is done. Only one nudge is in progress at a time.
//!
//! If several threads are in `block_on`s of one such runtime, a call by one of them does not mean that the
//! others are idle. The others race with the clock, as in tokio the futures of all but one of them do.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::entries::{Entries, Key, Tick};
use crate::quiet;

/// Whether a clock of the process was ever paused. Until then all clocks agree, and the current one need not
/// be looked up.
pub(super) static EVER_PAUSED: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
pub(super) struct Pausable {
    start: Instant,
    runtime: OnceLock<paceline::Handle>,
    /// No user code runs under this lock: no waker is cloned, called or dropped under it.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    time: Time,
    entries: Entries,
    /// How many activities may produce work.
    holds: usize,
    /// An activity has ended, and the thread has not looked since.
    is_released: bool,
    is_nudged: bool,
}

#[derive(Clone, Copy, Debug)]
enum Time {
    /// The clock runs: a time of this clock, and the same time on the system's clock.
    Runs {
        here: Instant,
        system: Instant,
    },
    Paused(Instant),
}

/// When a future deadline comes.
pub(super) enum Ahead {
    /// Unknown while paused.
    Paused,
    /// At this time of the system's clock at the latest.
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

    pub(super) fn bind(&self, runtime: paceline::Handle) {
        let _ = self.runtime.set(runtime);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Instant {
        self.lock().time.now()
    }

    /// Returns false if it is already paused.
    pub(super) fn pause(&self) -> bool {
        EVER_PAUSED.store(true, Ordering::Release);
        let mut state = self.lock();
        let did_run = matches!(state.time, Time::Runs { .. });
        state.time = Time::Paused(state.time.now());
        self.changed(state);
        did_run
    }

    /// Returns false if it is not paused.
    pub(super) fn resume(&self) -> bool {
        let mut state = self.lock();
        let Time::Paused(here) = state.time else { return false };
        state.time = Time::Runs { here, system: Instant::now() };
        drop(state);
        self.wake_all();
        true
    }

    /// Moves the clock without waking tasks: see [`fire`](Self::fire). Returns false if it is not paused.
    pub(super) fn advance(&self, duration: Duration) -> bool {
        let mut state = self.lock();
        let Time::Paused(now) = state.time else { return false };
        state.time = Time::Paused(now + duration);
        true
    }

    /// Wakes tasks that are due while the clock is paused.
    pub(super) fn fire(&self) {
        let state = self.lock();
        if let Time::Paused(now) = state.time {
            self.moves(state, now);
        }
    }

    fn moves(&self, mut state: MutexGuard<'_, State>, now: Instant) {
        state.time = Time::Paused(now);
        let due = state.entries.take_due(self.tick_at(now));
        drop(state);
        due.into_iter().for_each(quiet::wake);
    }

    /// Wakes all waiting tasks, to check their deadlines again.
    pub(super) fn wake_all(&self) {
        let all = self.lock().entries.take_all();
        all.into_iter().for_each(quiet::wake);
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

    /// Called when the thread is idle: moves the clock, if it may and no event is ready.
    pub(super) fn idles(&self) {
        let may_move = self.lock().may_move();
        let has_fired = may_move && self.runtime.get().is_some_and(paceline::Handle::fire_ready_events);
        let mut state = self.lock();
        state.is_nudged = false;
        state.is_released |= has_fired;
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

    /// If the clock may move now, makes the thread call [`idles`](Self::idles).
    fn changed(&self, mut state: MutexGuard<'_, State>) {
        let is_new = state.may_move() && !mem::replace(&mut state.is_nudged, true);
        drop(state);
        if is_new {
            if let Some(runtime) = self.runtime.get() {
                nudge(runtime);
            }
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

    /// Returns `None` if the deadline, which is that of the key, has passed. Otherwise the task is woken when
    /// the deadline comes, or when its time on the system's clock changes; while the clock runs, that takes
    /// an alarm.
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

    /// Moves a wait from one key to another, unless its task was woken; wakes the task if the new key is due.
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
    /// Whether the clock is paused, a task waits for it, and no activity may produce work.
    fn may_move(&self) -> bool {
        matches!(self.time, Time::Paused(_)) && self.holds == 0 && self.entries.first().is_some()
    }
}

/// Gives the runtime an empty task.
fn nudge(runtime: &paceline::Handle) {
    runtime.spawn(async {}).detach();
}
