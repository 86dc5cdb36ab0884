//! Listeners, and the connections that a SYN makes.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::super::Kernel;
use super::super::errno::{Errno, fail};
use super::super::ids::{HostId, SocketId};
use super::super::packet::Segment;
use super::super::sockets::{SocketKind, SocketState};
use super::connection::{Connection, TcpState};
use super::{ConnectProgress, Listener, Tcp};

impl Kernel {
    /// Makes a socket listen. At most `backlog + 1` connections wait for `accept`. A second call changes the
    /// backlog.
    pub(crate) fn listen(&mut self, id: SocketId, backlog: usize) -> io::Result<()> {
        if self.is_unix(id)? {
            return self.unix_listen(id, backlog);
        }
        let backlog = backlog.min(self.settings.max_backlog);
        let socket = self.sockets.get_mut(id)?;
        let host = socket.host;
        let tcp = socket.tcp()?;
        if tcp.progress != ConnectProgress::Unconnected || tcp.connection.state != TcpState::Closed {
            return fail(Errno::Invalid);
        }
        if let Some(listener) = &mut tcp.listener {
            listener.backlog = backlog;
            return Ok(());
        }
        if !socket.is_bound {
            let address = SocketAddr::new(socket.local.ip(), 0);
            self.bind_port(id, address)?;
        }
        let socket = self.sockets.get(id)?;
        let port = socket.local.port();
        let listeners = self.hosts.get(host).listeners.get(&port).map_or(&[][..], Vec::as_slice);
        for other in listeners {
            if self.sockets.get(*other)?.overlaps(socket) {
                return fail(Errno::AddressInUse);
            }
        }
        self.hosts.get_mut(host).listeners.entry(port).or_default().push(id);
        let tcp = self.sockets.get_mut(id)?.tcp()?;
        tcp.listener = Some(Listener { backlog, ..Listener::default() });
        Ok(())
    }

    /// Returns the next connection of a listener, and its peer.
    pub(crate) fn accept(&mut self, id: SocketId) -> io::Result<(SocketId, SocketAddr)> {
        let tcp = self.sockets.get_mut(id)?.tcp()?;
        let Some(listener) = &mut tcp.listener else { return fail(Errno::Invalid) };
        let Some(child) = listener.ready.pop_front() else { return fail(Errno::WouldBlock) };
        let socket = self.sockets.get_mut(child)?;
        socket.is_hidden = false;
        socket.tcp()?.parent = None;
        let Some(remote) = socket.remote else { return fail(Errno::ConnectionAborted) };
        Ok((child, socket.family.shown(remote)))
    }

    /// Returns the listener for a SYN. One for the address goes before one for all addresses.
    pub(super) fn find_listener(&self, host: HostId, local: SocketAddr) -> Option<SocketId> {
        let ids = self.hosts.get(host).listeners.get(&local.port())?;
        let accepting = ids.iter().filter_map(|&id| {
            let socket = self.sockets.get(id).ok()?;
            socket.accepts(local.ip()).then_some((socket.rank(), id))
        });
        accepting.max_by_key(|&(rank, _)| rank).map(|(_, id)| id)
    }

    /// A SYN has arrived for a listener: makes a connection, if the backlog has room.
    pub(super) fn syn_arrives(
        &mut self,
        parent: SocketId,
        local: SocketAddr,
        remote: SocketAddr,
        syn: &Segment,
    ) {
        if self.is_full(parent) {
            return;
        }
        let Ok(socket) = self.sockets.get(parent) else { return };
        let mut tcp = Tcp::new(self.connection_between(local.ip()));
        tcp.parent = Some(parent);
        tcp.progress = ConnectProgress::Connected;
        tcp.is_abortive = matches!(&socket.kind, SocketKind::Tcp(tcp) if tcp.is_abortive);
        let child = SocketState {
            only_v6: socket.only_v6,
            reuse_address: socket.reuse_address,
            local,
            remote: Some(remote),
            is_hidden: true,
            ..SocketState::new(socket.host, socket.family, SocketKind::Tcp(Box::new(tcp)))
        };
        let host = child.host;
        let id = self.sockets.insert(child);
        self.register_connection(host, id, local, remote);
        if let Some(listener) = self.listener_mut(parent) {
            listener.pending.insert(id);
        }
        let first = self.first_number();
        let result = self.with_connection(id, |connection, cx| connection.answer(first, syn, cx));
        debug_assert!(result.is_ok(), "the socket is new");
    }

    pub(super) fn register_connection(
        &mut self,
        host: HostId,
        id: SocketId,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        let host = self.hosts.get_mut(host);
        host.tcp_ports.insert(local.port(), id);
        host.connections.insert((local, remote), id);
    }

    /// Makes a connection with the segment size of the way to its own address.
    pub(super) fn connection_between(&self, local: IpAddr) -> Connection {
        let mut connection = Connection::new(&self.settings);
        connection.segment_size = self.segment_size(local);
        connection
    }

    pub(super) fn segment_size(&self, local: IpAddr) -> usize {
        // The header of IPv6 is 20 bytes longer than that of IPv4.
        let header = if local.is_ipv6() { 20 } else { 0 };
        let size = if local.is_loopback() { self.settings.loopback_segment } else { self.settings.segment };
        size.saturating_sub(header).max(1)
    }

    fn listener_mut(&mut self, id: SocketId) -> Option<&mut Listener> {
        self.sockets.get_mut(id).ok()?.tcp().ok()?.listener.as_mut()
    }

    fn listener(&self, id: SocketId) -> Option<&Listener> {
        match &self.sockets.get(id).ok()?.kind {
            SocketKind::Tcp(tcp) => tcp.listener.as_ref(),
            _ => None,
        }
    }

    pub(super) fn is_full(&self, listener: SocketId) -> bool {
        self.listener(listener).is_some_and(Listener::is_full)
    }

    pub(super) fn is_pending(&self, listener: SocketId, child: SocketId) -> bool {
        self.listener(listener).is_none_or(|listener| listener.pending.contains(&child))
    }

    /// The handshake of a connection is complete: it waits for `accept`.
    pub(super) fn complete(&mut self, parent: SocketId, child: SocketId) {
        if let Some(listener) = self.listener_mut(parent) {
            if listener.pending.remove(&child) {
                listener.ready.push_back(child);
                self.push_edge(parent);
            }
        }
    }

    /// Removes a connection from the queues of its listener.
    pub(in super::super) fn abandon(&mut self, parent: SocketId, child: SocketId) {
        if let Some(listener) = self.listener_mut(parent) {
            listener.pending.remove(&child);
            listener.ready.retain(|other| *other != child);
        }
    }

    /// Ends a listener. Connections that nothing has accepted are reset.
    pub(in super::super) fn stop_listening(&mut self, id: SocketId) {
        self.unregister_listener(id);
        let Some(listener) = self.listener_mut(id).map(std::mem::take) else { return };
        if let Ok(tcp) = self.sockets.get_mut(id).and_then(|socket| socket.tcp()) {
            tcp.listener = None;
        }
        for child in listener.pending {
            self.forget(child);
        }
        for child in listener.ready {
            let result = self.with_connection(child, |connection, cx| connection.close(true, cx));
            debug_assert!(result.is_ok(), "the queue has no closed sockets");
            self.forget(child);
        }
    }

    /// Removes a listener from the table of its host.
    pub(in super::super) fn unregister_listener(&mut self, id: SocketId) {
        let Ok(socket) = self.sockets.get(id) else { return };
        let (host, port) = (socket.host, socket.local.port());
        let listeners = &mut self.hosts.get_mut(host).listeners;
        if let Some(ids) = listeners.get_mut(&port) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                listeners.remove(&port);
            }
        }
    }
}

impl SocketState {
    /// Returns how exactly the socket is bound, for the choice among several that accept a packet.
    pub(in super::super) fn rank(&self) -> u8 {
        match (self.remote, self.local.ip().is_unspecified()) {
            (Some(_), _) => 3,
            (None, false) => 2,
            (None, true) if !self.is_dual() => 1,
            (None, true) => 0,
        }
    }
}
