//! The calls for all kinds of sockets.

use std::io;
use std::net::{Shutdown, SocketAddr};

use super::Kernel;
use super::errno::{Errno, fail};
use super::ids::{Family, SocketId};
use super::readiness::SocketReadiness;
use super::sockets::{SocketKind, SocketState};
use super::tcp::TcpState;

impl Kernel {
    /// Gives a socket a local address. Port 0 stands for a free one of the ephemeral ports.
    pub(crate) fn bind(&mut self, id: SocketId, address: SocketAddr) -> io::Result<()> {
        let socket = self.sockets.get(id)?;
        let canonical = match (socket.family, address) {
            (Family::V4, SocketAddr::V6(_)) => return fail(Errno::FamilyNotSupported),
            (Family::V6, SocketAddr::V4(_)) => return fail(Errno::Invalid),
            _ => SocketAddr::new(address.ip().to_canonical(), address.port()),
        };
        if canonical.is_ipv4() && socket.only_v6 {
            return fail(Errno::Invalid);
        }
        if !self.hosts.is_local(socket.host, canonical.ip()) {
            return fail(Errno::AddressNotAvailable);
        }
        let is_connected = match &socket.kind {
            SocketKind::Tcp(tcp) => tcp.connection.state != TcpState::Closed,
            SocketKind::Udp(_) => false,
            SocketKind::Unix(_) => return fail(Errno::Invalid),
        };
        if socket.is_bound || is_connected {
            return fail(Errno::Invalid);
        }
        Ok(self.bind_port(id, canonical)?)
    }

    /// Binds a socket to a local address that is valid for it.
    pub(super) fn bind_port(&mut self, id: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let socket = self.sockets.get_mut(id)?;
        let previous = std::mem::replace(&mut socket.local, address);
        let host = socket.host;
        let port = match address.port() {
            0 => {
                let ports = self.ports(id)?.candidates(&self.settings.ephemeral_ports);
                ports.into_iter().find(|&port| self.is_free(id, port, true))
            }
            port => self.is_free(id, port, false).then_some(port),
        };
        let socket = self.sockets.get_mut(id)?;
        let Some(port) = port else {
            socket.local = previous;
            return Err(Errno::AddressInUse);
        };
        socket.local.set_port(port);
        socket.is_bound = true;
        socket.keeps_port = address.port() != 0;
        let is_tcp = socket.is_tcp();
        let host = self.hosts.get_mut(host);
        let ports = if is_tcp { &mut host.tcp_ports } else { &mut host.udp_ports };
        ports.insert(port, id);
        if address.port() == 0 {
            ports.set_last(port);
        }
        Ok(())
    }

    fn ports(&self, id: SocketId) -> Result<&super::ports::Ports, Errno> {
        let socket = self.sockets.get(id)?;
        let host = self.hosts.get(socket.host);
        Ok(if socket.is_tcp() { &host.tcp_ports } else { &host.udp_ports })
    }

    /// Returns whether a socket can have the port besides those that have it.
    fn is_free(&self, id: SocketId, port: u16, is_ephemeral: bool) -> bool {
        let (Ok(socket), Ok(ports)) = (self.sockets.get(id), self.ports(id)) else { return false };
        ports.users(port).all(|other| {
            let Ok(other) = self.sockets.get(other) else { return true };
            let may_share =
                socket.reuse_address && other.reuse_address && !other.is_listening() && !is_ephemeral;
            may_share || !socket.overlaps(other)
        })
    }

    /// Connects a socket. A stream returns `EINPROGRESS`, and becomes writable at the end; its result is then
    /// that of [`take_error`](Self::take_error). A datagram socket is connected at once.
    pub(crate) fn connect(&mut self, id: SocketId, remote: SocketAddr) -> io::Result<()> {
        let socket = self.sockets.get(id)?;
        match (socket.family, remote, &socket.kind) {
            (Family::V4, SocketAddr::V6(_), _) => fail(Errno::FamilyNotSupported),
            (Family::V6, SocketAddr::V4(_), SocketKind::Tcp(_)) => fail(Errno::Invalid),
            (_, _, SocketKind::Tcp(_)) => self.tcp_connect(id, remote),
            (_, _, SocketKind::Udp(_)) => self.udp_connect(id, remote),
            (_, _, SocketKind::Unix(_)) => fail(Errno::Invalid),
        }
    }

    /// Ends one or both directions of a connection.
    pub(crate) fn shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        match self.sockets.get(id)?.kind {
            SocketKind::Tcp(_) => self.tcp_shutdown(id, how),
            SocketKind::Udp(_) => self.udp_shutdown(id, how),
            SocketKind::Unix(_) => self.unix_shutdown(id, how),
        }
    }

    /// Closes a socket. A connection sends what waits, or an RST if the program has not read all that has
    /// arrived.
    pub(crate) fn close(&mut self, id: SocketId) -> io::Result<()> {
        match self.sockets.get(id)?.kind {
            SocketKind::Tcp(_) => self.tcp_close(id)?,
            SocketKind::Udp(_) => self.forget(id),
            SocketKind::Unix(_) => self.unix_close(id),
        }
        self.settle();
        Ok(())
    }

    /// Removes a socket from all tables, without a packet.
    pub(super) fn forget(&mut self, id: SocketId) {
        self.disconnect(id);
        self.unregister_listener(id);
        let Some(socket) = self.sockets.remove(id) else { return };
        let host = self.hosts.get_mut(socket.host);
        match &socket.kind {
            SocketKind::Tcp(tcp) => {
                host.tcp_ports.remove(socket.local.port(), id);
                if let Some(parent) = tcp.parent {
                    self.abandon(parent, id);
                }
            }
            SocketKind::Udp(_) => host.udp_ports.remove(socket.local.port(), id),
            SocketKind::Unix(_) => {}
        }
    }

    /// Returns the local address, with port 0 before the socket is bound.
    pub(crate) fn local_addr(&self, id: SocketId) -> io::Result<SocketAddr> {
        let socket = self.sockets.get(id)?;
        Ok(match socket.local {
            local if local.ip().is_unspecified() => {
                SocketAddr::new(socket.family.unspecified().ip(), local.port())
            }
            local => socket.family.shown(local),
        })
    }

    /// Returns the address of the peer.
    pub(crate) fn peer_addr(&self, id: SocketId) -> io::Result<SocketAddr> {
        let socket = self.sockets.get(id)?;
        let is_connected = match &socket.kind {
            SocketKind::Tcp(tcp) => !tcp.connection.is_closed() && tcp.connection.state != TcpState::SynSent,
            _ => true,
        };
        match socket.remote.filter(|_| is_connected) {
            Some(remote) => Ok(socket.family.shown(remote)),
            None => fail(Errno::NotConnected),
        }
    }

    /// Returns `SO_ERROR` and clears it.
    pub(crate) fn take_error(&mut self, id: SocketId) -> io::Result<Option<io::Error>> {
        let error = match &mut self.sockets.get_mut(id)?.kind {
            SocketKind::Tcp(tcp) => &mut tcp.connection.error,
            SocketKind::Udp(udp) => &mut udp.error,
            SocketKind::Unix(unix) => &mut unix.error,
        };
        Ok(error.take().map(io::Error::from))
    }

    /// Sets `SO_REUSEADDR`: an address can be bound again while connections of an earlier listener exist.
    pub(crate) fn set_reuse_address(&mut self, id: SocketId, reuse: bool) -> io::Result<()> {
        self.sockets.get_mut(id)?.reuse_address = reuse;
        Ok(())
    }

    /// Sets `IPV6_V6ONLY`.
    pub(crate) fn set_only_v6(&mut self, id: SocketId, only: bool) -> io::Result<()> {
        let socket = self.sockets.get_mut(id)?;
        if socket.family == Family::V4 || socket.local.port() != 0 {
            return fail(Errno::Invalid);
        }
        socket.only_v6 = only;
        Ok(())
    }

    /// Sets `SO_LINGER` with a time of zero, by which `close` resets the connection, or removes it.
    pub(crate) fn set_abortive(&mut self, id: SocketId, abortive: bool) -> io::Result<()> {
        self.sockets.get_mut(id)?.tcp()?.is_abortive = abortive;
        Ok(())
    }
}

impl SocketState {
    pub(super) fn readiness(&self) -> SocketReadiness {
        match &self.kind {
            SocketKind::Tcp(tcp) => match &tcp.listener {
                Some(listener) => SocketReadiness::READABLE.when(!listener.ready.is_empty()),
                None => tcp.connection.readiness(),
            },
            SocketKind::Udp(udp) => udp.readiness(),
            SocketKind::Unix(unix) => unix.readiness(),
        }
    }

    fn is_listening(&self) -> bool {
        matches!(&self.kind, SocketKind::Tcp(tcp) if tcp.listener.is_some())
    }
}
