//! [`Alarm`]: the timer of a sleep while its clock runs. Nothing is registered before the first poll, so a
//! sleep that is never polled costs only the deadline.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use paceline::Timer;

/// A [`Timer`] that stays done, and that is pending at its first poll unless its deadline had passed at its
/// creation. In tokio, timers fire when the runtime looks for events, and the first poll of a future
/// registers its timers.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: Timer,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    /// Not polled yet.
    New {
        /// Whether the deadline had already passed.
        is_past: bool,
    },
    Set,
    /// The deadline had passed at the first poll: the second one returns ready.
    Due,
    Rung,
}

/// A deadline at least this long ago has passed: tokio counts in milliseconds.
const PAST: Duration = Duration::from_millis(1);

impl Alarm {
    /// Returns an alarm for a deadline, where the clock reads `now`.
    pub(super) fn at(deadline: Instant, now: Instant) -> Self {
        let is_past = now.saturating_duration_since(deadline) >= PAST;
        Self { timer: Timer::at(deadline), state: State::New { is_past } }
    }

    /// Returns an alarm after a duration, and its deadline; `None` if that is beyond the clock. Reads the
    /// clock once; a timer with a given deadline reads it again at its first poll, however far away the
    /// deadline is.
    pub(super) fn after(duration: Duration) -> Option<(Self, Instant)> {
        let timer = Timer::after(duration);
        let deadline = timer.deadline()?;
        Some((Self { timer, state: State::New { is_past: false } }, deadline))
    }

    /// Sets another deadline, for which the alarm counts as polled.
    pub(super) fn set(&mut self, deadline: Instant) {
        self.timer.set_at(deadline);
        self.state = State::Set;
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.state {
            State::Rung => return Poll::Ready(()),
            State::Due => {
                self.state = State::Rung;
                return Poll::Ready(());
            }
            State::New { .. } | State::Set => {}
        }
        let result = Pin::new(&mut self.timer).poll(cx).map(drop);
        self.state = match (&self.state, result) {
            (_, Poll::Pending) => State::Set,
            (State::New { is_past: false }, Poll::Ready(())) => {
                cx.waker().wake_by_ref();
                self.state = State::Due;
                return Poll::Pending;
            }
            (_, Poll::Ready(())) => State::Rung,
        };
        result
    }

    /// Returns whether the alarm is over; if no poll has seen that yet, returns the result of `is_past`.
    pub(super) fn is_elapsed(&self, is_past: impl FnOnce() -> bool) -> bool {
        match self.state {
            State::New { .. } => false,
            State::Set | State::Due => is_past(),
            State::Rung => true,
        }
    }
}

/// For a clock that differs from that of the timer.
#[cfg(feature = "test-util")]
impl Alarm {
    /// The same deadline has this time on the system's clock now.
    pub(super) fn correct(&mut self, deadline: Instant) {
        if self.timer.deadline() != Some(deadline) {
            self.set(deadline);
        }
    }

    /// Records a wait that uses another mechanism.
    pub(super) fn note_wait(&mut self) {
        self.state = State::Set;
    }

    pub(super) fn has_rung(&self) -> bool {
        self.state == State::Rung
    }

    pub(super) fn rings(&mut self) {
        self.state = State::Rung;
    }
}
