//! [`Journal`]: what has happened on the nodes of a simulation, for the reader of a failure.
//!
//! A run keeps its faults, and of what its nodes noted and sent as much as a page needs. A run whose trace is
//! wanted keeps all, with the polls and wakes of its tasks.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::net::{Fate, HostId, Packet, PacketBody};
use super::tasks::TaskId;

/// What a run keeps beside its faults, unless it keeps all.
const KEPT: usize = 2_000;

/// What a run keeps of all, for a trace: some hundreds of megabytes.
const KEPT_OF_ALL: usize = 1_000_000;

/// Upper bound of the faults that are kept, the last ones.
const MOST_FAULTS: usize = 1_000;

/// Something that has happened.
#[derive(Clone, Debug)]
pub(super) struct JournalEntry {
    pub(super) at: Duration,
    /// The host on which it happened.
    pub(super) host: HostId,
    pub(super) what: Incident,
}

#[derive(Clone, Debug)]
pub(super) enum Incident {
    Noted(String),
    /// A change of a file.
    File(String),
    /// A crash, a partition, and so on, and the ends of these.
    Fault(String),
    Packet(PacketEntry),
    /// The order of a plan did not choose the task that was ready for longest.
    Chosen(String),
    Panicked(TaskId),
    Spawned(TaskId),
    Woken(TaskId),
    PollBegins(TaskId),
    PollEnds,
    Ended(TaskId),
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketEntry {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) fate: Fate,
    pub(super) kind: PacketKind,
    /// Those of its content.
    pub(super) bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    Connects,
    /// The answer to a segment that connects.
    Accepts,
    Data,
    /// A segment that only acknowledges.
    Acknowledges,
    Closes,
    Resets,
    Datagram,
    Unreachable,
}

/// Lost packets from a host to another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    pub(super) count: u64,
    /// The times of the last three.
    pub(super) last: Vec<Duration>,
}

/// What has happened so far.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) keeps_all: bool,
    pub(super) entries: VecDeque<JournalEntry>,
    /// Also those that are not among the entries any more.
    pub(super) faults: VecDeque<JournalEntry>,
    /// How many faults there were.
    pub(super) all_faults: u64,
    pub(super) losses: BTreeMap<(IpAddr, IpAddr), Losses>,
    /// The host of the first panic at the time of the last one, and that time.
    pub(super) panicked: Option<(HostId, Duration)>,
}

impl Journal {
    pub(super) fn new(keeps_all: bool) -> Self {
        Self {
            keeps_all,
            entries: VecDeque::new(),
            faults: VecDeque::new(),
            all_faults: 0,
            losses: BTreeMap::new(),
            panicked: None,
        }
    }

    pub(super) fn add(&mut self, entry: JournalEntry) {
        match &entry.what {
            Incident::Fault(_) => {
                self.all_faults += 1;
                push(&mut self.faults, entry.clone(), MOST_FAULTS);
            }
            // A panic of a task that another one awaits is the other one's, too, at the same time.
            Incident::Panicked(_) if self.panicked.is_none_or(|(_, at)| at < entry.at) => {
                self.panicked = Some((entry.host, entry.at));
            }
            Incident::Packet(packet) if packet.fate == Fate::Dropped => {
                let ends = (packet.from.ip(), packet.to.ip());
                self.losses.entry(ends).or_default().add(entry.at);
            }
            _ => {}
        }
        push(&mut self.entries, entry, if self.keeps_all { KEPT_OF_ALL } else { KEPT });
    }
}

/// Adds an entry to those of which so many are kept.
fn push(entries: &mut VecDeque<JournalEntry>, entry: JournalEntry, kept: usize) {
    if entries.len() >= kept {
        entries.pop_front();
    }
    entries.push_back(entry);
}

impl Losses {
    /// How many times are kept.
    const LAST: usize = 3;

    fn add(&mut self, at: Duration) {
        self.count += 1;
        self.last.push(at);
        self.keep_last();
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.count += other.count;
        self.last.extend(&other.last);
        self.last.sort_unstable();
        self.keep_last();
    }

    fn keep_last(&mut self) {
        let from = self.last.len().saturating_sub(Self::LAST);
        self.last.drain(..from);
    }
}

impl PacketEntry {
    pub(super) fn new(fate: Fate, packet: &Packet) -> Self {
        let (kind, bytes) = match &packet.body {
            PacketBody::Tcp(segment) => {
                let kind = match segment {
                    segment if segment.rst => PacketKind::Resets,
                    segment if segment.syn && segment.ack.is_some() => PacketKind::Accepts,
                    segment if segment.syn => PacketKind::Connects,
                    segment if segment.fin => PacketKind::Closes,
                    segment if segment.data.is_empty() => PacketKind::Acknowledges,
                    _ => PacketKind::Data,
                };
                (kind, segment.data.len())
            }
            PacketBody::Udp(bytes) => (PacketKind::Datagram, bytes.len()),
            PacketBody::Unreachable(_) => (PacketKind::Unreachable, 0),
        };
        Self { from: packet.from, to: packet.to, fate, kind, bytes }
    }

    /// Returns whether a page tells of it. It tells when a packet is sent, and when it is lost.
    pub(super) fn is_told(&self) -> bool {
        let is_answer = matches!(self.kind, PacketKind::Accepts | PacketKind::Acknowledges);
        match self.fate {
            Fate::Sent | Fate::Held => !is_answer,
            Fate::Dropped => true,
            Fate::Delivered => false,
        }
    }
}
