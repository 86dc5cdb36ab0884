//! What happens later: packets that arrive and timers of connections.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::ids::{HostId, SocketId};
use super::packet::Packet;

/// Something that happens at a time.
#[derive(Debug)]
pub(super) enum NetEvent {
    /// A packet arrives.
    Arrival(Flight),
    /// The timer of a connection may be due.
    Timer(SocketId),
}

/// A packet on its way between two hosts, which may be the same one.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) packet: Packet,
}

#[derive(Debug)]
struct Scheduled {
    at: Duration,
    rank: u64,
    event: NetEvent,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The earliest entry is the greatest, because [`BinaryHeap`] yields the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.rank).cmp(&(self.at, self.rank))
    }
}

/// The events by time, and those of one time by the order in which they were scheduled.
#[derive(Debug, Default)]
pub(super) struct NetEvents {
    heap: BinaryHeap<Scheduled>,
    /// Events that are due at once, which is each packet inside of a host. All of them were scheduled after
    /// all entries of the heap that are due.
    due: VecDeque<NetEvent>,
    scheduled: u64,
}

impl NetEvents {
    /// Schedules an event for a time, which is `now` or later.
    pub(super) fn schedule(&mut self, now: Duration, at: Duration, event: NetEvent) {
        if at <= now {
            self.due.push_back(event);
        } else {
            self.scheduled += 1;
            self.heap.push(Scheduled { at, rank: self.scheduled, event });
        }
    }

    /// Returns the next event up to a time, and its time.
    pub(super) fn pop(&mut self, now: Duration, until: Duration) -> Option<(Duration, NetEvent)> {
        let limit = if self.due.is_empty() { until } else { now };
        if self.heap.peek().is_some_and(|next| next.at <= limit) {
            return self.heap.pop().map(|entry| (entry.at, entry.event));
        }
        self.due.pop_front().map(|event| (now, event))
    }

    /// Returns the time of the next event and, if it is a timer, the socket.
    pub(super) fn next(&self) -> Option<(Duration, Option<SocketId>)> {
        let next = self.heap.peek()?;
        let timer = match next.event {
            NetEvent::Timer(id) => Some(id),
            NetEvent::Arrival(_) => None,
        };
        Some((next.at, timer))
    }

    /// Removes the event that [`next`](Self::next) returned.
    pub(super) fn remove_next(&mut self) {
        self.heap.pop();
    }
}
