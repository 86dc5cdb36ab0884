//! [`Progress`]: which runners made no progress between two looks of the deputy, and what their threads did.

use std::any::Any;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::executor::Hosted;
use crate::insight::Reports;
use crate::pool::{Spot, Station};
use crate::probe::Witness;
use crate::sync::Instant;

/// Runners, and the stations of threads that host none, from look to look.
#[derive(Debug, Default)]
pub(super) struct Progress {
    looks: u64,
    /// By their addresses.
    known: HashMap<usize, Known>,
}

/// The entry of a runner, or of a thread that hosts none.
#[derive(Debug)]
pub(super) struct Known {
    /// Keeps the address from being used again. Otherwise the next `block_on` of a thread could have the same
    /// address, and would seem to be in the last one's poll.
    _object: Weak<dyn Any + Send + Sync>,
    /// How far it had got.
    spot: Spot,
    /// A time at which it was there already, soon after it was first seen there.
    pub(super) since: Instant,
    /// The activity of its thread since then.
    pub(super) witness: Witness,
    /// Processor time that the thread used between the last two looks, and polls of tasks meanwhile, if it
    /// was awake at both.
    work: (Duration, u64),
    pub(super) reports: Reports,
    /// The number of the last look that found it.
    seen: u64,
    /// The number of the last look that found that it had made progress.
    moved: u64,
}

impl Progress {
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Begins a look.
    pub(super) fn look_begins(&mut self) {
        self.looks += 1;
    }

    /// Ends a look: removes the entries that it did not find.
    pub(super) fn look_ends(&mut self) {
        let looks = self.looks;
        self.known.retain(|_, known| known.seen == looks);
    }

    /// Returns what is known of the object, if it was at `spot` at the last look as well: then it has made no
    /// progress. Otherwise begins a new record, and returns `None`. The record begins now, after the caller
    /// has read the spot, and the clock of each later look is read before the spot: so no time is counted in
    /// which the object was elsewhere.
    pub(super) fn none_of<T: Any + Send + Sync>(
        &mut self,
        object: &Arc<T>,
        spot: Spot,
        station: &Station,
    ) -> Option<&mut Known> {
        let looks = self.looks;
        let fresh = || {
            let now = Instant::now();
            let _object: Weak<dyn Any + Send + Sync> = Arc::<T>::downgrade(object);
            let witness = Witness::new((!station.is_quiet()).then_some(station.state), now);
            Known {
                _object,
                spot,
                since: now,
                witness,
                work: Default::default(),
                reports: Reports::new(),
                seen: 0,
                moved: looks,
            }
        };
        let known = self.known.entry(key(object)).or_insert_with(fresh);
        let first = mem::replace(&mut known.seen, looks) == 0;
        if first || known.spot != spot {
            let fresh = fresh();
            // A poll counts when it begins and when it ends.
            let polls = polls(spot).saturating_sub(polls(known.spot)) / 2;
            let used = fresh.witness.used_since(&known.witness);
            *known = Known { seen: looks, work: used.map(|used| (used, polls)).unwrap_or_default(), ..fresh };
            return None;
        }
        Some(known)
    }

    pub(super) fn has_moved<T>(&self, object: &Arc<T>) -> bool {
        self.of(object).is_some_and(|known| known.moved == self.looks)
    }

    /// Returns the processor time that its thread used since the last look, and the polls of tasks meanwhile;
    /// zero for a thread that made no progress, or that was asleep at one of the two looks.
    pub(super) fn work<T>(&self, object: &Arc<T>) -> (Duration, u64) {
        self.of(object).filter(|known| known.moved == self.looks).map(|known| known.work).unwrap_or_default()
    }

    /// Returns the processor time that its thread has used since its last progress.
    pub(super) fn computed<T>(&self, object: &Arc<T>) -> Duration {
        self.of(object).map_or(Duration::ZERO, |known| known.witness.computed)
    }

    /// Returns whether the station's thread is in the poll, or in the waker, in which the last look found it
    /// blocking or computing, with no task left in its runners.
    pub(super) fn is_stuck(&self, station: &Arc<Station>) -> bool {
        let is_there = |known: &Known, spot| known.spot == spot && known.witness.is_settled();
        if let Some(spot) = station.spot_of_guest() {
            return self.of(station).is_some_and(|known| is_there(known, spot));
        }
        station.runners.lock().iter().all(|Hosted { runner, .. }| {
            let spot = station.spot(Some((runner, runner.stage())));
            !runner.has_tasks() && self.of(runner).is_some_and(|known| is_there(known, spot))
        })
    }

    fn of<T>(&self, object: &Arc<T>) -> Option<&Known> {
        self.known.get(&key(object))
    }

    /// Returns the entry with this [`key`].
    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Known> {
        self.known.get_mut(&key)
    }
}

/// Returns how often the runner of a spot has begun or ended a poll.
fn polls(spot: Spot) -> u64 {
    spot.1.map_or(0, |(_, stage)| stage.work())
}

/// Returns the key of an object's entry.
pub(super) fn key<T>(object: &Arc<T>) -> usize {
    Arc::as_ptr(object).addr()
}
