//! [`Clock`] with `test-util`: that of a current-thread runtime is a [`Pausable`]. What waits for one of these has an [`Entry`] there,
//! whether it is paused or not, so that a pause finds all of it; and an [`Alarm`] beside that, while the clock runs. When it runs
//! again after a pause everybody is woken, to set that. An alarm that rings for a time that is not any more wakes somebody in vain.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time;

use super::alarm::Alarm;
use super::entries::Key;
use super::pausable::{Ahead, EVER_PAUSED, Pausable};
use super::pausing::NOT_PAUSABLE;
use super::{Duration, Instant};
use crate::context;

pub(super) fn now() -> Instant {
    // Acquire: whoever was told of a pause, in whatever way, sees it.
    let here = if EVER_PAUSED.load(Ordering::Acquire) { context::current() } else { None };
    let clock = here.as_ref().and_then(|runtime| runtime.clock().pausable());
    Instant::from_std(clock.map_or_else(time::Instant::now, |clock| clock.now()))
}

/// A runtime's clock.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    pausable: Option<Arc<Pausable>>,
    is_shut_down: AtomicBool,
}

/// Something is under way that may bring work.
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<Pausable>>);

impl Clock {
    /// A clock that may be paused, as a current-thread runtime's, and that is from the start, perhaps.
    ///
    /// # Panics
    ///
    /// If it is to be paused and may not.
    pub(crate) fn new(may_pause: bool, starts_paused: bool) -> Self {
        assert!(may_pause || !starts_paused, "{NOT_PAUSABLE}");
        let pausable = may_pause.then(|| Arc::new(Pausable::new(starts_paused)));
        Self { pausable, is_shut_down: AtomicBool::new(false) }
    }

    pub(crate) fn is_of(&self, runtime: &paceline::Handle) {
        self.pausable().iter().for_each(|clock| clock.is_of(runtime.clone()));
    }

    pub(super) fn pausable(&self) -> Option<&Pausable> {
        self.pausable.as_deref()
    }

    pub(crate) fn is_pausable(&self) -> bool {
        self.pausable.is_some()
    }

    /// A thread of the runtime has nothing to do.
    pub(crate) fn idles(&self) {
        self.pausable().iter().for_each(|clock| clock.idles());
    }

    /// Until it is dropped, a paused clock does not move on its own.
    pub(crate) fn hold(&self) -> Hold {
        self.pausable().iter().for_each(|clock| clock.hold());
        Hold(self.pausable.clone())
    }

    /// The runtime has no tasks any more. Who waits elsewhere is told: here, or when its timers end, which is next.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
        self.pausable().iter().for_each(|clock| clock.wake_all());
    }

    pub(super) fn is_shut_down(&self) -> bool {
        // ORDER: Acquire pairs with the Release above; whoever is woken by the end sees it anyway.
        self.is_shut_down.load(Ordering::Acquire)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.iter().for_each(|clock| clock.let_go());
    }
}

/// One that waits for a clock that can be paused; dropping it takes it out.
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

/// What a [`Sleep`](super::Sleep) waits with.
#[derive(Debug)]
pub(super) struct Wait {
    alarm: Alarm,
    entry: Option<Entry>,
}

impl Wait {
    pub(super) fn at(deadline: Instant) -> Self {
        Self { alarm: Alarm::at(deadline.into_std()), entry: None }
    }

    /// So long from now, and when that is; `None` if the clock does not go that far.
    pub(super) fn after(duration: Duration) -> Option<(Self, Instant)> {
        if EVER_PAUSED.load(Ordering::Acquire) {
            let deadline = now().checked_add(duration)?;
            return Some((Self::at(deadline), deadline));
        }
        let (alarm, deadline) = Alarm::after(duration)?;
        Some((Self { alarm, entry: None }, Instant::from_std(deadline)))
    }

    /// Whoever waits goes on waiting, for this deadline.
    pub(super) fn set(&mut self, deadline: Instant) {
        self.entry.iter_mut().for_each(|entry| entry.set(deadline));
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
                self.alarm.is_set();
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
            None => deadline <= time::Instant::now(),
        })
    }
}
