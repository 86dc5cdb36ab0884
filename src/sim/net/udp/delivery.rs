//! The arrival of datagrams, and of errors for them.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::Kernel;
use super::super::errno::Errno;
use super::super::ids::{HostId, SocketId};
use super::super::packet::{Fate, Packet, PacketBody, Unreachable};

impl Kernel {
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
    pub(in super::super) fn datagram_arrives(&mut self, host: HostId, packet: Packet) {
        let limit = self.settings.datagram_buffer;
        let Some(id) = self.find_datagram_socket(host, packet.to, packet.from) else {
            self.report(host, Fate::Delivered, &packet);
            let body = PacketBody::Unreachable(Unreachable::Port);
            let error = Packet { from: packet.to, to: packet.from, body };
            self.transmit(host, error, Duration::ZERO);
            return;
        };
        let PacketBody::Udp(bytes) = &packet.body else { return };
        let count = bytes.len();
        let Ok(udp) = self.sockets.get_mut(id).and_then(|socket| socket.udp()) else { return };
        // As with Linux, the datagram that exceeds the limit is still accepted.
        let is_full = udp.queued >= limit || udp.is_read_closed;
        self.report(host, if is_full { Fate::Dropped } else { Fate::Delivered }, &packet);
        if is_full {
            return;
        }
        let (Ok(socket), PacketBody::Udp(bytes)) = (self.sockets.get_mut(id), packet.body) else { return };
        let Ok(udp) = socket.udp() else { return };
        udp.queued += count;
        udp.queue.push_back((packet.from, bytes));
        self.push_edge(id);
    }

    /// An ICMP error has arrived for a datagram from `local` to `remote`. Only a connected socket learns of
    /// it.
    pub(in super::super) fn datagram_error_arrives(
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
