//! UDP.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::Duration;

use super::Kernel;
use super::errno::{Errno, fail};
use super::hosts::HostId;
use super::packet::{Body, Fate, Packet, Unreachable};
use super::readiness::Readiness;
use super::sockets::{Family, Kind, Socket, SocketId};

/// A UDP socket.
#[derive(Debug, Default)]
pub(super) struct Udp {
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The sum of the payloads in the queue.
    queued: usize,
    pub(super) error: Option<Errno>,
    is_read_closed: bool,
    is_write_closed: bool,
}

impl Udp {
    pub(super) fn readiness(&self) -> Readiness {
        Readiness::READABLE.when(self.is_read_closed || !self.queue.is_empty())
            | Readiness::WRITABLE
            | Readiness::READ_HANGUP.when(self.is_read_closed)
            | Readiness::HANGUP.when(self.is_read_closed && self.is_write_closed)
            | Readiness::ERROR.when(self.error.is_some())
    }

    fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }
}

/// The largest payload of a datagram: 65 535 bytes less the headers that the length field counts.
fn max_payload(to: IpAddr) -> usize {
    if to.is_ipv4() { 65_507 } else { 65_527 }
}

impl Kernel {
    /// Makes a UDP socket.
    pub(crate) fn udp_socket(&mut self, host: HostId, family: Family) -> io::Result<SocketId> {
        if !self.is_up(host) {
            return fail(Errno::NetworkDown);
        }
        Ok(self.sockets.insert(Socket::new(host, family, Kind::Udp(Box::default()))))
    }

    pub(super) fn udp_connect(&mut self, id: SocketId, remote: SocketAddr) -> io::Result<()> {
        let (remote, source) = self.find_way(id, remote)?;
        self.bind_if_needed(id)?;
        let socket = self.sockets.get_mut(id)?;
        socket.remote = Some(remote);
        socket.local.set_ip(source);
        Ok(())
    }

    fn bind_if_needed(&mut self, id: SocketId) -> Result<(), Errno> {
        let local = self.sockets.get(id)?.local;
        if local.port() == 0 { self.bind_port(id, local) } else { Ok(()) }
    }

    /// Sends a datagram to an address. A datagram that is lost on its way is not an error.
    pub(crate) fn send_to(&mut self, id: SocketId, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.sockets.get_mut(id)?.udp()?;
        self.bind_if_needed(id)?;
        let socket = self.sockets.get(id)?;
        if to.port() == 0 {
            return fail(Errno::Invalid);
        }
        if socket.family == Family::V4 && to.is_ipv6() {
            return fail(Errno::FamilyNotSupported);
        }
        self.udp_send(id, bytes, Some(to))
    }

    pub(super) fn udp_send(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        to: Option<SocketAddr>,
    ) -> io::Result<usize> {
        // As with Linux, a socket is bound even if the datagram is then refused.
        self.bind_if_needed(id)?;
        let socket = self.sockets.get(id)?;
        let Some(to) = to.or(socket.remote) else { return fail(Errno::DestinationRequired) };
        if bytes.len() > max_payload(to.ip().to_canonical()) {
            return fail(Errno::MessageTooLong);
        }
        let is_broadcast = matches!(to.ip().to_canonical(), IpAddr::V4(ip) if ip.is_broadcast());
        if is_broadcast {
            return fail(Errno::AccessDenied);
        }
        let (to, source) = self.find_way(id, to)?;
        let socket = self.sockets.get_mut(id)?;
        let (host, from) = (socket.host, SocketAddr::new(source, socket.local.port()));
        let udp = socket.udp()?;
        udp.take_error()?;
        if udp.is_write_closed {
            return fail(Errno::BrokenPipe);
        }
        self.transmit(host, Packet { from, to, body: Body::Udp(bytes.to_vec()) }, Duration::ZERO);
        self.settle();
        Ok(bytes.len())
    }

    /// Receives a datagram, and its sender. What does not fit into the buffer is lost.
    pub(crate) fn recv_from(&mut self, id: SocketId, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.sockets.get_mut(id)?.udp()?;
        self.udp_receive(id, buffer, false)
    }

    /// Copies a datagram, and leaves it in the queue.
    pub(crate) fn peek_from(&mut self, id: SocketId, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.sockets.get_mut(id)?.udp()?;
        self.udp_receive(id, buffer, true)
    }

    pub(super) fn udp_receive(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        is_peek: bool,
    ) -> io::Result<(usize, SocketAddr)> {
        let socket = self.sockets.get_mut(id)?;
        let family = socket.family;
        let udp = socket.udp()?;
        udp.take_error()?;
        let Some((from, bytes)) = udp.queue.front() else { return fail(Errno::WouldBlock) };
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        let from = family.shown(*from);
        if !is_peek {
            udp.queued -= bytes.len();
            udp.queue.pop_front();
        }
        Ok((count, from))
    }

    pub(super) fn udp_shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let socket = self.sockets.get_mut(id)?;
        let is_connected = socket.remote.is_some();
        let udp = socket.udp()?;
        udp.is_read_closed |= how != Shutdown::Write;
        udp.is_write_closed |= how != Shutdown::Read;
        self.push_edge(id);
        if is_connected { Ok(()) } else { fail(Errno::NotConnected) }
    }

    /// Returns the socket for a datagram: the one that is bound most exactly, and of several the last one.
    fn find_datagram_socket(&self, host: HostId, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        let users = self.hosts.get(host).udp_ports.users(local.port());
        let accepting = users.filter_map(|id| {
            let socket = self.sockets.get(id).ok()?;
            let is_peer = socket.remote.is_none_or(|peer| peer == remote);
            (is_peer && socket.accepts(local.ip())).then_some((socket.rank(), id))
        });
        accepting.max().map(|(_, id)| id)
    }

    /// A datagram has arrived at a host.
    pub(super) fn datagram_arrives(&mut self, host: HostId, packet: Packet) {
        let limit = self.settings.datagram_buffer;
        let Some(id) = self.find_datagram_socket(host, packet.to, packet.from) else {
            self.report(Fate::Delivered, &packet);
            let body = Body::Unreachable(Unreachable::Port);
            let error = Packet { from: packet.to, to: packet.from, body };
            self.transmit(host, error, Duration::ZERO);
            return;
        };
        let Body::Udp(bytes) = &packet.body else { return };
        let count = bytes.len();
        let Ok(udp) = self.sockets.get_mut(id).and_then(|socket| socket.udp()) else { return };
        // As with Linux, the datagram that exceeds the limit is still accepted.
        let is_full = udp.queued >= limit || udp.is_read_closed;
        self.report(if is_full { Fate::Dropped } else { Fate::Delivered }, &packet);
        if is_full {
            return;
        }
        let (Ok(socket), Body::Udp(bytes)) = (self.sockets.get_mut(id), packet.body) else { return };
        let Ok(udp) = socket.udp() else { return };
        udp.queued += count;
        udp.queue.push_back((packet.from, bytes));
        self.push_edge(id);
    }

    /// An ICMP error has arrived for a datagram from `local` to `remote`. Only a connected socket learns of
    /// it.
    pub(super) fn datagram_error_arrives(
        &mut self,
        host: HostId,
        local: SocketAddr,
        remote: SocketAddr,
        errno: Errno,
    ) {
        let Some(id) = self.find_datagram_socket(host, local, remote) else { return };
        let Ok(socket) = self.sockets.get_mut(id) else { return };
        if socket.remote == Some(remote) {
            if let Ok(udp) = socket.udp() {
                udp.error = Some(errno);
            }
            self.push_edge(id);
        }
    }
}
