//! The calls of UDP sockets.

use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::Duration;

use super::super::Kernel;
use super::super::errno::{Errno, fail};
use super::super::ids::{Family, HostId, SocketId};
use super::super::packet::{Packet, PacketBody};
use super::super::sockets::{SocketKind, SocketState};

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
        Ok(self.sockets.insert(SocketState::new(host, family, SocketKind::Udp(Box::default()))))
    }

    pub(in super::super) fn udp_connect(&mut self, id: SocketId, remote: SocketAddr) -> io::Result<()> {
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

    pub(in super::super) fn udp_send(
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
        self.transmit(host, Packet { from, to, body: PacketBody::Udp(bytes.to_vec()) }, Duration::ZERO);
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

    pub(in super::super) fn udp_receive(
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

    pub(in super::super) fn udp_shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let socket = self.sockets.get_mut(id)?;
        let is_connected = socket.remote.is_some();
        let udp = socket.udp()?;
        udp.is_read_closed |= how != Shutdown::Write;
        udp.is_write_closed |= how != Shutdown::Read;
        self.push_edge(id);
        if is_connected { Ok(()) } else { fail(Errno::NotConnected) }
    }
}
