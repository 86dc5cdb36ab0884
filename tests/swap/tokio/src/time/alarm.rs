//! [`Alarm`]: what a sleep waits with while its clock runs. Nothing is registered before it is polled, so one that never is costs
//! nothing but the deadline.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use paceline::Timer;

/// A [`Timer`] that stays done once it is.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: Timer,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    /// Nobody has waited for it.
    New,
    Set,
    Rung,
}

impl Alarm {
    pub(super) fn at(deadline: Instant) -> Self {
        Self { timer: Timer::at(deadline), state: State::New }
    }

    /// So long from now, and when that is; `None` if the clock does not go that far. It reads the clock once, here; a timer that is
    /// given the deadline does so again when it is polled first, however far that is.
    pub(super) fn after(duration: Duration) -> Option<(Self, Instant)> {
        let timer = Timer::after(duration);
        let deadline = timer.deadline()?;
        Some((Self { timer, state: State::New }, deadline))
    }

    /// Another deadline, for which it counts as waited for.
    pub(super) fn set(&mut self, deadline: Instant) {
        self.timer.set_at(deadline);
        self.state = State::Set;
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.state == State::Rung {
            return Poll::Ready(());
        }
        self.state = State::Set;
        let result = Pin::new(&mut self.timer).poll(cx).map(drop);
        if result.is_ready() {
            self.state = State::Rung;
        }
        result
    }

    /// Whether it is over; where nobody has seen that yet, `is_past` says.
    pub(super) fn is_elapsed(&self, is_past: impl FnOnce() -> bool) -> bool {
        match self.state {
            State::New => false,
            State::Set => is_past(),
            State::Rung => true,
        }
    }
}

/// For a clock that is not always the timer's.
#[cfg(feature = "test-util")]
impl Alarm {
    /// The same deadline, which is now at this time.
    pub(super) fn correct(&mut self, deadline: Instant) {
        if self.timer.deadline() != Some(deadline) {
            self.set(deadline);
        }
    }

    /// Somebody waits for it, elsewhere.
    pub(super) fn is_set(&mut self) {
        self.state = State::Set;
    }

    pub(super) fn has_rung(&self) -> bool {
        self.state == State::Rung
    }

    pub(super) fn rings(&mut self) {
        self.state = State::Rung;
    }
}
