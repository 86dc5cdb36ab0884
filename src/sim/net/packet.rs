//! Packets, and what rules and traces say of them.

use std::net::SocketAddr;
use std::time::Duration;

/// A packet on its way from a socket to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet {
    /// The address of the sender.
    pub from: SocketAddr,
    /// The address of the receiver.
    pub to: SocketAddr,
    /// What is sent.
    pub body: PacketBody,
}

/// The content of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketBody {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Vec<u8>),
    /// An ICMP error: a packet from `to` of this packet to `from` has not arrived.
    Unreachable(Unreachable),
}

/// Why a packet has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// No datagram socket has the port.
    Port,
    /// No host has the address.
    TcpHost,
    /// No host has the address.
    UdpHost,
}

/// A TCP segment. Sequence numbers have 64 bits, so they never wrap, and each connection has numbers of its
/// own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// The number of the first byte, or of the SYN.
    pub seq: u64,
    /// The number of the next byte that the sender expects, if the segment acknowledges.
    pub ack: Option<u64>,
    /// How many bytes after `ack` the sender of the segment accepts.
    pub window: u64,
    /// The segment opens the sequence.
    pub syn: bool,
    /// The segment ends the sequence.
    pub fin: bool,
    /// The segment resets the connection.
    pub rst: bool,
    /// The payload.
    pub data: Vec<u8>,
}

impl Segment {
    /// Returns how many sequence numbers the segment takes.
    pub(super) fn len(&self) -> u64 {
        self.data.len() as u64 + u64::from(self.syn) + u64::from(self.fin)
    }

    /// Returns the sequence number after the segment.
    pub(super) fn end(&self) -> u64 {
        self.seq + self.len()
    }

    /// Returns the RST that answers this segment if it belongs to no connection.
    pub(super) fn refusal(&self) -> Segment {
        match self.ack {
            Some(ack) => Segment { seq: ack, rst: true, ..Segment::default() },
            None => Segment { ack: Some(self.end()), rst: true, ..Segment::default() },
        }
    }
}

/// What a rule does with a packet between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next rule decides, and after the last one the link.
    Pass,
    /// The packet arrives after this time, whatever the link's latency and loss are.
    Deliver(Duration),
    /// The packet is lost.
    Drop,
}

/// What happened to a packet, as the trace reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    /// A socket sent the packet.
    Sent,
    /// The packet waits, because its link is held.
    Held,
    /// The packet arrived at its host.
    Delivered,
    /// The packet is lost: by the link, a rule, a partition, a host that is down, or a full queue.
    Dropped,
}
