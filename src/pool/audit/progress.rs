//! [`Progress`]: who got no further between two looks of the deputy's, and what their threads were at.

use std::any::Any;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::pool::stall::{Culprit, Reports};
use crate::pool::witness::{Doing, Witness};
use crate::pool::{Pool, Station};
use crate::sync::Instant;

/// How long a task may sleep beside a worker that has no core before it is taken for one that blocks by itself.
const INNOCENT: Duration = Duration::from_millis(100);

/// Runners, and the stations of threads that host none, from look to look.
#[derive(Debug, Default)]
pub(super) struct Progress {
    looks: u64,
    /// By their addresses.
    known: HashMap<usize, Known>,
    /// One of the workers had no core at the last look.
    pub(super) starves: bool,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Known {
    /// As long as it is known nobody else is at its address: the next `block_on` of a thread would be, and look as if it were at what
    /// the last one was at.
    _who: Weak<dyn Any + Send + Sync>,
    /// How far it had got: in polls; and its thread with events.
    progress: (u64, u64),
    /// When it was first seen there.
    pub(super) since: Instant,
    /// What its thread has been at since then.
    pub(super) witness: Witness,
    reports: Reports,
    /// The number of the last look that found it; and of the last one that found it further than before.
    seen: u64,
    moved: u64,
}

impl Progress {
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// One more look begins.
    pub(super) fn look_begins(&mut self) {
        self.looks += 1;
    }

    /// Who was not seen at it is gone.
    pub(super) fn look_ends(&mut self) {
        let looks = self.looks;
        self.known.retain(|_, known| known.seen == looks);
    }

    /// What is known of `who`, if it has got no further than at the last look.
    pub(super) fn none_of<T: Any + Send + Sync>(
        &mut self,
        who: &Arc<T>,
        progress: (u64, u64),
        station: &Station,
        now: Instant,
    ) -> Option<&mut Known> {
        let looks = self.looks;
        let fresh = || {
            let _who: Weak<dyn Any + Send + Sync> = Arc::<T>::downgrade(who);
            let witness = Witness::new((!station.is_quiet()).then_some(station.state), now);
            Known { _who, progress, since: now, witness, reports: Reports::new(), seen: 0, moved: looks }
        };
        let known = self.known.entry(key(who)).or_insert_with(fresh);
        let first = mem::replace(&mut known.seen, looks) == 0;
        if first || known.progress != progress {
            *known = Known { seen: looks, ..fresh() };
            return None;
        }
        Some(known)
    }

    pub(super) fn has_moved<T>(&self, who: &Arc<T>) -> bool {
        self.of(who).is_some_and(|known| known.moved == self.looks)
    }

    /// What its thread has computed since it got any further.
    pub(super) fn computed<T>(&self, who: &Arc<T>) -> Duration {
        self.of(who).map_or(Duration::ZERO, |known| known.witness.computed)
    }

    pub(super) fn of<T>(&self, who: &Arc<T>) -> Option<&Known> {
        self.known.get(&key(who))
    }
}

impl Known {
    /// Its thread is at something that may have to be told.
    pub(super) fn report(
        &mut self,
        pool: &Arc<Pool>,
        station: &Station,
        culprit: Culprit,
        doing: Doing,
        starves: bool,
    ) {
        // Who sleeps while a worker waits for a core may sleep in a lock that this one has.
        let is_innocent = doing == Doing::Blocks && starves && self.witness.blocked < INNOCENT;
        if !is_innocent {
            self.reports.look(pool, station, culprit, doing, &self.witness);
        }
    }
}

fn key<T>(who: &Arc<T>) -> usize {
    Arc::as_ptr(who).addr()
}
