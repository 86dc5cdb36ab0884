//! The way of a packet: rules, links and loss when it is sent, and the socket for it when it arrives.

use std::time::Duration;

use super::Kernel;
use super::events::{Flight, NetEvent};
use super::hosts::Route;
use super::ids::HostId;
use super::packet::{Fate, Packet, PacketBody, Unreachable, Verdict};

impl Kernel {
    pub(super) fn report(&mut self, host: HostId, fate: Fate, packet: &Packet) {
        if let Some(trace) = &mut self.trace {
            trace(self.now, host, fate, packet);
        }
    }

    /// Returns whether a packet that a link or a rule would lose is lost.
    fn may_lose(&mut self, from: HostId, to: HostId) -> bool {
        let [from, to] = [from, to].map(|host| self.hosts.get(host).name.as_str());
        self.may_lose.as_mut().is_none_or(|may_lose| may_lose(from, to))
    }

    /// Sends a packet from a host. It arrives at `earliest` or later, if it is not delayed by a rule. Returns
    /// the time of the arrival if the packet is on its way.
    pub(super) fn transmit(&mut self, from: HostId, packet: Packet, earliest: Duration) -> Option<Duration> {
        self.sent += 1;
        self.report(from, Fate::Sent, &packet);
        let (to, arrival) = match self.hosts.route(from, packet.to.ip()) {
            Route::Local => (from, (self.now + self.settings.loopback_latency).max(earliest)),
            Route::Remote(to) => match self.judge(&packet) {
                Verdict::Deliver(after) => (to, self.now.saturating_add(after)),
                Verdict::Drop if self.may_lose(from, to) => return self.lose(from, &packet),
                Verdict::Pass | Verdict::Drop => return self.transmit_by_link(from, to, packet, earliest),
            },
            Route::NoHost => return self.transmit_to_nowhere(from, &packet),
            Route::NoNetwork => return self.lose(from, &packet),
        };
        Some(self.launch(Flight { from, to, packet }, arrival))
    }

    fn judge(&mut self, packet: &Packet) -> Verdict {
        let verdicts = self.rules.iter_mut().map(|(_, rule)| rule(packet));
        verdicts.into_iter().find(|verdict| *verdict != Verdict::Pass).unwrap_or(Verdict::Pass)
    }

    fn transmit_by_link(
        &mut self,
        from: HostId,
        to: HostId,
        packet: Packet,
        earliest: Duration,
    ) -> Option<Duration> {
        let loss = self.links.loss(from, to);
        let is_lost = self.links.is_cut(from, to)
            || loss > 0.0 && chance((self.random)()) < loss && self.may_lose(from, to);
        if is_lost {
            return self.lose(from, &packet);
        }
        if self.links.is_held(from, to) {
            self.report(from, Fate::Held, &packet);
            self.links.hold(Flight { from, to, packet });
            return None;
        }
        let latency = self.links.latency(from, to);
        let (least, most) = (*latency.start(), *latency.end());
        let latency = if least < most { draw(least, most, (self.random)()) } else { least };
        Some(self.launch(Flight { from, to, packet }, self.now.saturating_add(latency).max(earliest)))
    }

    fn launch(&mut self, flight: Flight, arrival: Duration) -> Duration {
        self.events.schedule(self.now, arrival, NetEvent::Arrival(flight));
        arrival
    }

    fn lose(&mut self, from: HostId, packet: &Packet) -> Option<Duration> {
        self.report(from, Fate::Dropped, packet);
        None
    }

    /// Loses a packet for an address that no host has, and tells its sender after the time that ARP takes.
    fn transmit_to_nowhere(&mut self, from: HostId, packet: &Packet) -> Option<Duration> {
        self.report(from, Fate::Dropped, packet);
        let reason = match packet.body {
            PacketBody::Tcp(_) => Unreachable::TcpHost,
            PacketBody::Udp(_) => Unreachable::UdpHost,
            PacketBody::Unreachable(_) => return None,
        };
        let error = Packet { from: packet.to, to: packet.from, body: PacketBody::Unreachable(reason) };
        let arrival = self.now + self.settings.unreachable_after;
        self.launch(Flight { from, to: from, packet: error }, arrival);
        None
    }

    /// Passes a packet to its socket.
    pub(super) fn arrive(&mut self, flight: Flight) {
        let Flight { from, to, packet } = flight;
        if !self.hosts.get(to).is_up || from != to && self.links.is_cut(from, to) {
            return self.report(to, Fate::Dropped, &packet);
        }
        if matches!(packet.body, PacketBody::Udp(_)) {
            return self.datagram_arrives(to, packet);
        }
        self.report(to, Fate::Delivered, &packet);
        match packet.body {
            PacketBody::Tcp(segment) => self.segment_arrives(to, packet.to, packet.from, segment),
            PacketBody::Unreachable(reason) => self.error_arrives(to, packet.to, packet.from, reason),
            PacketBody::Udp(_) => {}
        }
    }
}

/// Returns a number from 0 to 1.
fn chance(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a duration of the range.
fn draw(least: Duration, most: Duration, random: u64) -> Duration {
    let span = (most - least).as_nanos() + 1;
    least + Duration::from_nanos(((u128::from(random) * span) >> 64) as u64)
}
