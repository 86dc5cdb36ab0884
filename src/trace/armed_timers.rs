//! Which timer wakes which task. A module of `reactor`, behind the feature `trace`.

use super::Reactor;
use crate::observed::unwrapped;
use crate::sync::{self, Instant};

impl Reactor {
    /// Returns when each armed timer is due, and the address that the waker of its task points to. `None` for
    /// a time that is too far away.
    pub(crate) fn armed_timers(&self) -> Vec<(Option<Instant>, usize)> {
        let wheel = sync::lock(&self.timers.wheel);
        let entries = wheel.iter().flat_map(|wheel| wheel.entries.iter());
        let armed = entries.filter_map(|entry| Some((entry.deadline, entry.value.as_ref()?)));
        armed.map(|(due, waker)| (self.timers.instant(due), unwrapped(waker).data().addr())).collect()
    }
}
