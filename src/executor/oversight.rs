//! Oversight of executors that strangers run: threads in somebody else's `block_on`, and tickers.
//!
//! A runner that is hosted in our own `block_on` is known to the deputy of its pool. A stranger is known to none, and may
//! be told of a task and not come, because its thread blocks in something else. So an executor with more than one runner
//! of which one is a stranger is shown to an overseer: the default instance's deputy. A stranger that is alone needs none,
//! there is nobody else to be told.

use std::sync::Weak;

use super::state::State;

/// How an overseer is told that there is something to see.
pub(crate) type Alarm = Box<dyn Fn() + Send + Sync>;

/// A stranger has joined `state`, or somebody who joins a stranger.
#[cold]
pub(super) fn joined(state: &State) {
    if state.has_company() && state.has_stranger() && !state.is_overseen() {
        // Two at once: either alarm will do.
        if let Some(alarm) = crate::oversee(state.itself()) {
            state.overseer.set(alarm);
        }
    }
    state.overseer.call();
}

impl State {
    /// Whether a deputy has been shown this executor.
    pub(super) fn is_overseen(&self) -> bool {
        self.overseer.is_set()
    }
}

/// An executor that an overseer keeps an eye on, as long as it is there and has more than one runner.
#[derive(Debug)]
pub(crate) struct Overseen(Weak<State>);

impl Overseen {
    pub(crate) fn new(state: Weak<State>) -> Self {
        Self(state)
    }

    /// Whether the executor is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// The executor, if there is anything to watch.
    pub(crate) fn executor(&self) -> Option<super::StateRef> {
        self.0.upgrade().filter(|state| state.has_company()).map(super::StateRef::Shared)
    }
}
