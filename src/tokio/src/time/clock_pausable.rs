//! [`Clock`] with `test-util`: the clock of a current-thread runtime is a [`Pausable`]. A wait for such a
//! clock has an [`Entry`] there, paused or not, so that a pause finds all waits; and an [`Alarm`] beside it
//! while the clock runs. When a paused clock resumes, all waiting tasks are woken to set their alarms. An
//! alarm for an outdated time wakes its task in vain.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use super::alarm::Alarm;
use super::entries::Key;
use super::pausable::{Ahead, EVER_PAUSED, Pausable};
use super::pausing::NOT_PAUSABLE;
use super::{Duration, Instant, system};
use crate::context;

pub(super) fn now() -> Instant {
    // Acquire: a thread that was told of a pause, in any way, sees it.
    let here = if EVER_PAUSED.load(Ordering::Acquire) { context::current() } else { None };
    let clock = here.as_ref().and_then(|runtime| runtime.clock().pausable());
    Instant::from_std(clock.map_or_else(system::now, |clock| clock.now()))
}

/// A runtime's clock.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    pausable: Option<Arc<Pausable>>,
    is_shut_down: AtomicBool,
}

/// An activity that may produce work.
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<Pausable>>);

impl Clock {
    /// Returns a clock that may be paused, as that of a current-thread runtime, and that may be paused from
    /// the start.
    ///
    /// # Panics
    ///
    /// If it starts paused and may not be paused.
    pub(crate) fn new(may_pause: bool, starts_paused: bool) -> Self {
        assert!(may_pause || !starts_paused, "{NOT_PAUSABLE}");
        let pausable = may_pause.then(|| Arc::new(Pausable::new(starts_paused)));
        Self { pausable, is_shut_down: AtomicBool::new(false) }
    }

    pub(crate) fn bind(&self, runtime: &paceline::Handle) {
        if let Some(clock) = self.pausable() {
            clock.bind(runtime.clone());
        }
    }

    pub(super) fn pausable(&self) -> Option<&Pausable> {
        self.pausable.as_deref()
    }

    pub(crate) fn is_pausable(&self) -> bool {
        self.pausable.is_some()
    }

    /// Called when a thread of the runtime is idle.
    pub(crate) fn idles(&self) {
        if let Some(clock) = self.pausable() {
            clock.idles();
        }
    }

    /// Until the result is dropped, a paused clock does not move by itself.
    pub(crate) fn hold(&self) -> Hold {
        if let Some(clock) = self.pausable() {
            clock.hold();
        }
        Hold(self.pausable.clone())
    }

    /// The runtime has no tasks any more. Tasks that wait elsewhere are woken here, or when its timers end,
    /// which follows.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
        if let Some(clock) = self.pausable() {
            clock.wake_all();
        }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        // ORDER: Acquire pairs with the Release above; a task that the end wakes sees it anyway.
        self.is_shut_down.load(Ordering::Acquire)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(clock) = &self.0 {
            clock.let_go();
        }
    }
}

/// A wait for a clock that can be paused; dropping it removes the wait.
#[derive(Debug)]
struct Entry {
    clock: Arc<Pausable>,
    key: Key,
}

impl Entry {
    fn new(clock: &Arc<Pausable>, deadline: Instant) -> Self {
        Self { clock: clock.clone(), key: clock.key(deadline.into_std()) }
    }

    fn set(&mut self, deadline: Instant) {
        let before = std::mem::replace(&mut self.key, self.clock.key(deadline.into_std()));
        self.clock.moved(before, self.key);
    }

    fn wait(&self, deadline: Instant, waker: &Waker) -> Option<Ahead> {
        self.clock.wait(self.key, deadline.into_std(), waker)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.clock.forget(self.key);
    }
}

/// The wait of a [`Sleep`](super::Sleep).
#[derive(Debug)]
pub(super) struct Wait {
    alarm: Alarm,
    entry: Option<Entry>,
}

impl Wait {
    /// Returns a wait for a deadline, which may have passed.
    pub(super) fn at(deadline: Instant, now: Instant) -> Self {
        Self { alarm: Alarm::at(deadline.into_std(), now.into_std()), entry: None }
    }

    /// Returns a wait for a duration, and its deadline; `None` if that is beyond the clock.
    pub(super) fn after(duration: Duration) -> Option<(Self, Instant)> {
        if EVER_PAUSED.load(Ordering::Acquire) {
            let now = now();
            let deadline = now.checked_add(duration)?;
            return Some((Self::at(deadline, now), deadline));
        }
        let (alarm, deadline) = Alarm::after(duration)?;
        Some((Self { alarm, entry: None }, Instant::from_std(deadline)))
    }

    /// A waiting task goes on waiting, for this deadline.
    pub(super) fn set(&mut self, deadline: Instant) {
        if let Some(entry) = &mut self.entry {
            entry.set(deadline);
        }
        self.alarm.set(deadline.into_std());
    }

    pub(super) fn poll(&mut self, clock: &Clock, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let Some(clock) = &clock.pausable else { return self.alarm.poll(cx) };
        if self.alarm.has_rung() {
            return Poll::Ready(());
        }
        let entry = self.entry.get_or_insert_with(|| Entry::new(clock, deadline));
        let result = match entry.wait(deadline, cx.waker()) {
            None => {
                self.alarm.rings();
                Poll::Ready(())
            }
            Some(Ahead::Paused) => {
                self.alarm.note_wait();
                Poll::Pending
            }
            Some(Ahead::Runs(deadline)) => {
                self.alarm.correct(deadline);
                self.alarm.poll(cx)
            }
        };
        if result.is_ready() {
            self.entry = None;
        }
        result
    }

    pub(super) fn is_elapsed(&self, clock: &Clock, deadline: Instant) -> bool {
        let deadline = deadline.into_std();
        self.alarm.is_elapsed(|| match clock.pausable() {
            Some(clock) => clock.has_passed(deadline),
            None => deadline <= system::now(),
        })
    }
}
