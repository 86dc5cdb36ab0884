//! The links between hosts: latency, loss, partitions and held packets.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::events::Flight;
use super::hosts::HostId;

/// One direction between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) latency: RangeInclusive<Duration>,
    pub(super) loss: f64,
    pub(super) is_cut: bool,
    pub(super) is_held: bool,
}

/// The links. Only those that differ from the default take memory, so that a network of many hosts costs what
/// its faults cost.
#[derive(Debug)]
pub(super) struct Links {
    default: Link,
    special: BTreeMap<(HostId, HostId), Link>,
    held: BTreeMap<(HostId, HostId), Vec<Flight>>,
}

impl Links {
    pub(super) fn new(latency: RangeInclusive<Duration>, loss: f64) -> Self {
        let default = Link { latency, loss, is_cut: false, is_held: false };
        Self { default, special: BTreeMap::new(), held: BTreeMap::new() }
    }

    pub(super) fn get(&self, from: HostId, to: HostId) -> &Link {
        if self.special.is_empty() {
            return &self.default;
        }
        self.special.get(&(from, to)).unwrap_or(&self.default)
    }

    /// Changes one direction of a link.
    pub(super) fn change(&mut self, from: HostId, to: HostId, change: impl FnOnce(&mut Link)) {
        let mut link = self.get(from, to).clone();
        change(&mut link);
        if link == self.default {
            self.special.remove(&(from, to));
        } else {
            self.special.insert((from, to), link);
        }
    }

    /// Changes the links that have no settings of their own.
    pub(super) fn change_default(&mut self, change: impl FnOnce(&mut Link)) {
        change(&mut self.default);
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
