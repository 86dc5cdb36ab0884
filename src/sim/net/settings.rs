//! The constants of the simulated network that a test can change.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Settings of a [`Kernel`](super::Kernel). Where Linux has a default for the value, it is the default here.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long a packet travels between two hosts, drawn for each packet.
    pub(crate) latency: RangeInclusive<Duration>,
    /// The fraction of the packets between two hosts that is lost, from 0 to 1.
    pub(crate) loss: f64,
    /// How long a packet travels inside of a host.
    pub(crate) loopback_latency: Duration,
    /// Bytes that a stream holds which its peer has not acknowledged.
    pub(crate) send_buffer: usize,
    /// Bytes that a stream holds for its reader, which is the largest window that it advertises.
    pub(crate) receive_buffer: usize,
    /// Bytes of payload that a datagram socket holds for its reader. Further datagrams are dropped.
    pub(crate) datagram_buffer: usize,
    /// Payload of a TCP segment between two hosts: Ethernet's 1 500 bytes less the headers.
    pub(crate) segment: usize,
    /// Payload of a TCP segment inside of a host: 65 536 bytes less the headers.
    pub(crate) loopback_segment: usize,
    /// The largest backlog that `listen` grants.
    pub(crate) max_backlog: usize,
    /// The ports that are given out for port 0.
    pub(crate) ephemeral_ports: RangeInclusive<u16>,
    /// The first retransmission timeout of a connection, before there is a measured round trip.
    pub(crate) first_timeout: Duration,
    /// What the retransmission timeout adds to the measured round trip at least.
    pub(crate) min_timeout: Duration,
    /// The upper bound of a retransmission timeout that has been doubled.
    pub(crate) max_timeout: Duration,
    /// How often a segment is sent again before the connection fails. The default bears about 15 minutes.
    pub(crate) retries: u32,
    /// How often a SYN is sent again before `connect` fails. The default bears 127 seconds.
    pub(crate) syn_retries: u32,
    /// How often a SYN-ACK is sent again before the listener forgets the connection.
    pub(crate) syn_ack_retries: u32,
    /// How long an ended connection keeps its port for late segments.
    pub(crate) time_wait: Duration,
    /// How long a closed connection waits for the FIN of its peer.
    pub(crate) fin_timeout: Duration,
    /// After what time an address without a host is reported as unreachable: three ARP requests.
    pub(crate) unreachable_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(100)..=Duration::from_micros(500),
            loss: 0.0,
            loopback_latency: Duration::ZERO,
            send_buffer: 64 << 10,
            receive_buffer: 64 << 10,
            datagram_buffer: 208 << 10,
            segment: 1460,
            loopback_segment: 65_483,
            max_backlog: 4096,
            ephemeral_ports: 32_768..=60_999,
            first_timeout: Duration::from_secs(1),
            min_timeout: Duration::from_millis(200),
            max_timeout: Duration::from_secs(120),
            retries: 15,
            syn_retries: 6,
            syn_ack_retries: 5,
            time_wait: Duration::from_secs(60),
            fin_timeout: Duration::from_secs(60),
            unreachable_after: Duration::from_secs(3),
        }
    }
}
