//! The socket kernel of the simulated network: hosts, links and sockets as one deterministic state machine.
//!
//! The kernel has the calls of a POSIX kernel with nonblocking sockets. Results, error numbers and readiness
//! are those of Linux. It does no I/O and has no threads and no clock: the caller moves the time by
//! [`Kernel::advance`], and passes the source of the random numbers. The same calls with the same random
//! numbers give the same packets.
//!
//! A call runs until nothing is due at the present time. Inside of a host, where the latency is zero, a
//! packet and all that follows from it is therefore processed before the call returns, as the loopback device
//! of Linux does.
//!
//! | file | content |
//! |---|---|
//! | `calls` | calls for all kinds of sockets: `bind`, `connect`, `close`, addresses, options |
//! | `tcp` | the state machine of a connection, and the calls of streams and listeners |
//! | `udp`, `unix` | datagram sockets; sockets that are named by a path |
//! | `wire` | rules, links, loss, and the arrival of packets |
//! | `hosts`, `links`, `ports`, `sockets`, `events` | the tables |
//! | `ids` | the numbers of hosts and sockets |
//! | `netstat` | a list of the sockets of a host |
//!
//! # What differs from Linux
//!
//! - There is no congestion control and no Nagle delay. Each segment with data is acknowledged at once.
//! - Segments of one connection do not overtake each other, except by loss and by rules. Datagrams do.
//! - Datagrams are not fragmented. A datagram socket is always writable.
//! - Broadcast, multicast, urgent data, `SO_REUSEPORT` and keepalive do not exist.
//! - A stream whose connection has ended cannot be bound or connected again.
//! - A stream that is shut down for writing before it connects reports the hangup only once it is connected.

mod calls;
mod errno;
mod events;
mod hosts;
mod ids;
mod links;
mod netstat;
mod packet;
mod ports;
mod readiness;
mod settings;
mod sockets;
mod tcp;
mod udp;
mod unix;
mod wire;

// Against the errors and the readiness of Linux.
#[cfg(all(test, target_os = "linux", not(any(miri, paceline_loom, paceline_shuttle))))]
mod tests;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

pub(crate) use errno::Errno;
pub(crate) use ids::{Family, HostId, SocketId};
#[cfg(test)]
pub(crate) use netstat::Netstat;
pub(crate) use packet::Fate;
pub use packet::{Packet, PacketBody, Segment, Unreachable, Verdict};
pub(crate) use readiness::SocketReadiness;
pub(crate) use settings::Settings;
pub(crate) use unix::UnixKind;

use events::{NetEvent, NetEvents};
use hosts::Hosts;
use links::Links;
use readiness::Edges;
use sockets::Sockets;

/// A rule of the network: see [`Network::add_rule`](crate::sim::Network::add_rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

pub(crate) type Rule = Box<dyn FnMut(&Packet) -> Verdict + Send>;
type PacketTrace = Box<dyn FnMut(Duration, HostId, Fate, &Packet) + Send>;
type LossFilter = Box<dyn FnMut(&str, &str) -> bool + Send>;

/// The simulated network.
pub(crate) struct Kernel {
    settings: Settings,
    random: Box<dyn FnMut() -> u64 + Send>,
    now: Duration,
    hosts: Hosts,
    links: Links,
    sockets: Sockets,
    events: NetEvents,
    edges: Edges,
    rules: Vec<(RuleId, Rule)>,
    trace: Option<PacketTrace>,
    may_lose: Option<LossFilter>,
    /// How many connections and rules have been made, for numbers of their own.
    made: u64,
    /// How many packets have been sent.
    sent: u64,
    /// The memory of the list of the segments that an operation sends.
    outbox: Vec<Segment>,
}

/// What a kernel holds, for a test that looks for leaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Sockets, with those that the program has closed and whose connection has not ended.
    pub(crate) sockets: usize,
    /// Ports in use by sockets.
    pub(crate) ports: usize,
    /// Connections that a segment can be for.
    pub(crate) connections: usize,
    /// Packets that wait for the release of a link.
    pub(crate) held: usize,
    /// Links that differ from the default.
    pub(crate) links: usize,
}

impl Kernel {
    /// Makes a network without hosts. Latency and loss are drawn from `random`.
    pub(crate) fn new(settings: Settings, random: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self {
            links: Links::new(settings.latency.clone(), settings.loss),
            settings,
            random: Box::new(random),
            now: Duration::ZERO,
            hosts: Hosts::default(),
            sockets: Sockets::default(),
            events: NetEvents::default(),
            edges: Edges::default(),
            rules: Vec::new(),
            trace: None,
            may_lose: None,
            made: 0,
            sent: 0,
            outbox: Vec::new(),
        }
    }

    #[cfg(test)]
    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Returns the settings, for a change. Latency and loss are those of the links, and do not change here.
    pub(crate) fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Returns the time of the next packet or timer, up to which nothing happens without a call.
    pub(crate) fn next_event(&mut self) -> Option<Duration> {
        loop {
            let (at, timer) = self.events.next()?;
            let Some(id) = timer else { return Some(at) };
            if self.timer_deadline(id, at) == Some(at) {
                return Some(at);
            }
            self.events.remove_next();
            self.run_timer(id, at);
        }
    }

    /// Moves the time to `now`, and processes what happens up to it. An earlier time changes nothing.
    pub(crate) fn advance(&mut self, now: Duration) {
        let until = now.max(self.now);
        while let Some((at, event)) = self.events.pop(self.now, until) {
            self.now = at;
            match event {
                NetEvent::Arrival(flight) => self.arrive(flight),
                NetEvent::Timer(id) => self.run_timer(id, at),
            }
        }
        self.now = until;
    }

    /// Processes what is due now.
    fn settle(&mut self) {
        self.advance(self.now);
    }

    /// Adds a host with the next free addresses.
    ///
    /// # Panics
    ///
    /// If there is a host of that name, or there are 65 534 hosts.
    pub(crate) fn add_host(&mut self, name: &str) -> HostId {
        self.hosts.add(name, &[])
    }

    #[cfg(test)]
    /// Adds a host with addresses that the caller chooses.
    ///
    /// # Panics
    ///
    /// If another host has the name or an address.
    pub(crate) fn add_host_at(&mut self, name: &str, addresses: &[IpAddr]) -> HostId {
        self.hosts.add(name, addresses)
    }

    /// Returns the addresses of the host of that name, as a name server does.
    pub(crate) fn lookup(&self, name: &str) -> Option<&[IpAddr]> {
        self.hosts.by_name(name).map(|host| self.addresses(host))
    }

    /// Returns the host of that name.
    pub(crate) fn host(&self, name: &str) -> Option<HostId> {
        self.hosts.by_name(name)
    }

    /// Returns the addresses of a host.
    pub(crate) fn addresses(&self, host: HostId) -> &[IpAddr] {
        &self.hosts.get(host).addresses
    }

    /// Returns the names of all hosts.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.hosts.iter().map(|host| &*host.name).collect()
    }

    /// Returns whether the host runs.
    pub(crate) fn is_up(&self, host: HostId) -> bool {
        self.hosts.get(host).is_up
    }

    /// Stops a host. Its sockets vanish without a packet, so that others learn of the crash by a timeout, or
    /// by an RST after [`restart`](Self::restart).
    pub(crate) fn crash(&mut self, host: HostId) {
        let of_host = |(id, socket): (SocketId, &sockets::SocketState)| (socket.host == host).then_some(id);
        for id in self.sockets.iter().filter_map(of_host).collect::<Vec<_>>() {
            self.forget(id);
        }
        let host = self.hosts.get_mut(host);
        host.is_up = false;
        host.paths.clear();
    }

    /// Starts a host again after a crash.
    pub(crate) fn restart(&mut self, host: HostId) {
        self.hosts.get_mut(host).is_up = true;
    }

    /// Drops all packets between two hosts, also those on their way.
    pub(crate) fn partition(&mut self, a: HostId, b: HostId) {
        self.partition_oneway(a, b);
        self.partition_oneway(b, a);
    }

    /// Drops all packets from a host to another, also those on their way.
    pub(crate) fn partition_oneway(&mut self, from: HostId, to: HostId) {
        self.links.change(from, to, |link| link.is_cut = true);
    }

    /// Returns whether packets between two hosts are dropped, in either direction.
    pub(crate) fn is_cut(&self, a: HostId, b: HostId) -> bool {
        self.links.is_cut(a, b) || self.links.is_cut(b, a)
    }

    /// Returns whether packets between two hosts are kept, in either direction.
    pub(crate) fn is_held(&self, a: HostId, b: HostId) -> bool {
        self.links.is_held(a, b) || self.links.is_held(b, a)
    }

    /// Ends a partition in both directions.
    pub(crate) fn repair(&mut self, a: HostId, b: HostId) {
        self.links.change(a, b, |link| link.is_cut = false);
        self.links.change(b, a, |link| link.is_cut = false);
    }

    /// Keeps the packets that are sent between two hosts from now on.
    pub(crate) fn hold(&mut self, a: HostId, b: HostId) {
        self.links.change(a, b, |link| link.is_held = true);
        self.links.change(b, a, |link| link.is_held = true);
    }

    /// Delivers the packets that [`hold`](Self::hold) kept, at once and in the order in which they were sent.
    pub(crate) fn release(&mut self, a: HostId, b: HostId) {
        for (from, to) in [(a, b), (b, a)] {
            self.links.change(from, to, |link| link.is_held = false);
            for flight in self.links.take_held(from, to) {
                self.events.schedule(self.now, self.now, NetEvent::Arrival(flight));
            }
        }
        self.settle();
    }

    /// Sets the latency between two hosts, in both directions.
    pub(crate) fn set_latency(&mut self, a: HostId, b: HostId, latency: RangeInclusive<Duration>) {
        self.links.change(a, b, |link| link.latency = Some(latency.clone()));
        self.links.change(b, a, |link| link.latency = Some(latency));
    }

    /// Sets the fraction of the packets between two hosts that is lost, in both directions.
    pub(crate) fn set_loss(&mut self, a: HostId, b: HostId, loss: f64) {
        self.links.change(a, b, |link| link.loss = Some(loss));
        self.links.change(b, a, |link| link.loss = Some(loss));
    }

    /// Sets the latency of all links that have no settings of their own.
    pub(crate) fn set_default_latency(&mut self, latency: RangeInclusive<Duration>) {
        self.links.latency = latency;
    }

    /// Sets the loss of all links that have no settings of their own.
    pub(crate) fn set_default_loss(&mut self, loss: f64) {
        self.links.loss = loss;
    }

    /// Adds a rule, which decides about the packets between hosts after the earlier rules.
    pub(crate) fn add_rule(&mut self, rule: impl FnMut(&Packet) -> Verdict + Send + 'static) -> RuleId {
        self.made += 1;
        let id = RuleId(self.made);
        self.rules.push((id, Box::new(rule)));
        id
    }

    /// Removes a rule, and returns it.
    pub(crate) fn remove_rule(&mut self, id: RuleId) -> Option<Rule> {
        let at = self.rules.iter().position(|(other, _)| *other == id)?;
        Some(self.rules.remove(at).1)
    }

    /// Reports what happens to each packet from now on, and on which host.
    pub(crate) fn set_trace(&mut self, trace: impl FnMut(Duration, HostId, Fate, &Packet) + Send + 'static) {
        self.trace = Some(Box::new(trace));
    }

    /// Asks, before a link or a rule loses a packet, whether it may. The arguments are the names of the
    /// sender and of the receiver.
    pub(crate) fn set_loss_filter(&mut self, may_lose: impl FnMut(&str, &str) -> bool + Send + 'static) {
        self.may_lose = Some(Box::new(may_lose));
    }

    /// Returns the name of the host with an address; `None` also for a loopback address, which all hosts
    /// have.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<&str> {
        self.hosts.find(address).map(|host| self.name(host))
    }

    /// Returns the name of a host.
    pub(crate) fn name(&self, host: HostId) -> &str {
        &self.hosts.get(host).name
    }

    /// Returns the next socket whose readiness may have changed, and its readiness. A socket without an event
    /// since the last call is not returned, as with `EPOLLET`.
    pub(crate) fn next_edge(&mut self) -> Option<(SocketId, SocketReadiness)> {
        while let Some(id) = self.edges.pop() {
            let Ok(socket) = self.sockets.get_mut(id) else { continue };
            socket.has_edge = false;
            let readiness = socket.readiness();
            if readiness != SocketReadiness::NONE {
                return Some((id, readiness));
            }
        }
        None
    }

    /// Returns what a socket is ready for.
    pub(crate) fn readiness(&self, id: SocketId) -> io::Result<SocketReadiness> {
        Ok(self.sockets.get(id)?.readiness())
    }

    #[cfg(test)]
    /// Returns how many packets have been sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns what the kernel holds.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            sockets: self.sockets.len(),
            ports: self.hosts.iter().map(|host| host.tcp_ports.len() + host.udp_ports.len()).sum(),
            connections: self.hosts.iter().map(|host| host.connections.len()).sum(),
            held: self.links.held(),
            links: self.links.special(),
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("now", &self.now).field("usage", &self.usage()).finish_non_exhaustive()
    }
}
