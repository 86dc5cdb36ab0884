//! The links between hosts: latency, loss, partitions and held packets.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::events::Flight;
use super::ids::HostId;

/// One direction between two hosts, as far as it differs from the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LinkState {
    pub(super) latency: Option<RangeInclusive<Duration>>,
    pub(super) loss: Option<f64>,
    pub(super) is_cut: bool,
    pub(super) is_held: bool,
}

/// The links. Only those that differ from the others take memory, so that a network of many hosts costs what
/// its faults cost.
#[derive(Debug)]
pub(super) struct Links {
    /// The latency of a link without one of its own.
    pub(super) latency: RangeInclusive<Duration>,
    /// The loss of a link without one of its own.
    pub(super) loss: f64,
    special: BTreeMap<(HostId, HostId), LinkState>,
    held: BTreeMap<(HostId, HostId), Vec<Flight>>,
}

impl Links {
    pub(super) fn new(latency: RangeInclusive<Duration>, loss: f64) -> Self {
        Self { latency, loss, special: BTreeMap::new(), held: BTreeMap::new() }
    }

    fn get(&self, from: HostId, to: HostId) -> Option<&LinkState> {
        if self.special.is_empty() { None } else { self.special.get(&(from, to)) }
    }

    pub(super) fn is_cut(&self, from: HostId, to: HostId) -> bool {
        self.get(from, to).is_some_and(|link| link.is_cut)
    }

    pub(super) fn is_held(&self, from: HostId, to: HostId) -> bool {
        self.get(from, to).is_some_and(|link| link.is_held)
    }

    pub(super) fn loss(&self, from: HostId, to: HostId) -> f64 {
        self.get(from, to).and_then(|link| link.loss).unwrap_or(self.loss)
    }

    pub(super) fn latency(&self, from: HostId, to: HostId) -> &RangeInclusive<Duration> {
        self.get(from, to).and_then(|link| link.latency.as_ref()).unwrap_or(&self.latency)
    }

    /// Changes one direction of a link.
    pub(super) fn change(&mut self, from: HostId, to: HostId, change: impl FnOnce(&mut LinkState)) {
        let mut link = self.get(from, to).cloned().unwrap_or_default();
        change(&mut link);
        if link == LinkState::default() {
            self.special.remove(&(from, to));
        } else {
            self.special.insert((from, to), link);
        }
    }

    /// Keeps a packet until the link is released.
    pub(super) fn hold(&mut self, flight: Flight) {
        self.held.entry((flight.from, flight.to)).or_default().push(flight);
    }

    /// Returns the packets that were kept, in the order in which they were sent.
    pub(super) fn take_held(&mut self, from: HostId, to: HostId) -> Vec<Flight> {
        self.held.remove(&(from, to)).unwrap_or_default()
    }

    pub(super) fn held(&self) -> usize {
        self.held.values().map(Vec::len).sum()
    }

    pub(super) fn special(&self) -> usize {
        self.special.len()
    }
}
