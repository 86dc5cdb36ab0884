//! The calls of streams.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};

use super::super::Kernel;
use super::super::errno::{Errno, fail};
use super::super::hosts::Route;
use super::super::ids::{Family, HostId, SocketId};
use super::super::sockets::{SocketKind, SocketState};
use super::connection::{Connection, TcpState};
use super::{ConnectProgress, Tcp};

impl Kernel {
    /// Makes a TCP socket.
    pub(crate) fn tcp_socket(&mut self, host: HostId, family: Family) -> io::Result<SocketId> {
        if !self.is_up(host) {
            return fail(Errno::NetworkDown);
        }
        let tcp = Box::new(Tcp::new(Connection::new(&self.settings)));
        Ok(self.sockets.insert(SocketState::new(host, family, SocketKind::Tcp(tcp))))
    }

    /// Starts a connection. The socket becomes writable when it is established or has failed; a second call
    /// returns the result.
    pub(in super::super) fn tcp_connect(&mut self, id: SocketId, remote: SocketAddr) -> io::Result<()> {
        let socket = self.sockets.get_mut(id)?;
        let tcp = socket.tcp()?;
        match (tcp.progress, tcp.connection.state) {
            (ConnectProgress::Disconnecting, _) => return fail(Errno::Invalid),
            (ConnectProgress::Connected, _) => return fail(Errno::IsConnected),
            (ConnectProgress::Connecting, TcpState::SynSent | TcpState::SynReceived) => {
                return fail(Errno::AlreadyConnecting);
            }
            (ConnectProgress::Connecting, TcpState::Closed) => {
                tcp.progress = ConnectProgress::Unconnected;
                let errno = tcp.connection.error.take().unwrap_or(Errno::ConnectionAborted);
                self.reset_socket(id)?;
                return fail(errno);
            }
            (ConnectProgress::Connecting, _) => {
                tcp.progress = ConnectProgress::Connected;
                return Ok(());
            }
            (ConnectProgress::Unconnected, _) if tcp.listener.is_some() => return fail(Errno::IsConnected),
            (ConnectProgress::Unconnected, _) => {}
        }
        // As with Linux, a direction that was shut down before stays so.
        let ends = (tcp.connection.is_read_closed, tcp.connection.is_write_closed);
        let (local, remote) = self.choose_addresses(id, remote)?;
        self.reset_socket(id)?;
        let socket = self.sockets.get_mut(id)?;
        (socket.local, socket.remote) = (local, Some(remote));
        let host = socket.host;
        self.register_connection(host, id, local, remote);
        let first = self.first_number();
        let segment_size = self.segment_size(local.ip());
        let tcp = self.sockets.get_mut(id)?.tcp()?;
        tcp.progress = ConnectProgress::Connecting;
        (tcp.connection.is_read_closed, tcp.connection.is_write_closed) = ends;
        self.with_connection(id, |connection, cx| {
            connection.segment_size = segment_size;
            connection.open(first, cx);
        })?;
        self.settle();
        fail(Errno::InProgress)
    }

    /// Forgets an earlier connection of the socket, so that it can connect again.
    fn reset_socket(&mut self, id: SocketId) -> Result<(), Errno> {
        let fresh = Connection::new(&self.settings);
        let socket = self.sockets.get_mut(id)?;
        socket.remote = None;
        if !socket.is_bound {
            socket.local = socket.family.unspecified();
        }
        let tcp = socket.tcp()?;
        tcp.connection = fresh;
        tcp.last_arrival = std::time::Duration::ZERO;
        Ok(())
    }

    /// Returns the addresses of a new connection, with a port of the socket's own.
    fn choose_addresses(
        &mut self,
        id: SocketId,
        remote: SocketAddr,
    ) -> Result<(SocketAddr, SocketAddr), Errno> {
        let (remote, source) = self.find_way(id, remote)?;
        let socket = self.sockets.get(id)?;
        let host = self.hosts.get(socket.host);
        if socket.is_bound {
            let local = SocketAddr::new(source, socket.local.port());
            let is_taken = host.connections.contains_key(&(local, remote));
            return if is_taken { Err(Errno::AddressNotAvailable) } else { Ok((local, remote)) };
        }
        let is_free = |port: u16| {
            let has_tuple = host.connections.contains_key(&(SocketAddr::new(source, port), remote));
            // Ports that a program has chosen, or listens at, are not given to others.
            let is_open =
                |user| self.sockets.get(user).is_ok_and(|user| !user.is_bound && user.remote.is_some());
            !has_tuple && host.tcp_ports.users(port).all(is_open)
        };
        let port = host.tcp_ports.candidates(&self.settings.ephemeral_ports).find(|&port| is_free(port));
        let port = port.ok_or(Errno::AddressNotAvailable)?;
        let host = socket.host;
        self.hosts.get_mut(host).tcp_ports.set_last(port);
        Ok((SocketAddr::new(source, port), remote))
    }

    /// Returns the address that a packet to `remote` has, and the source address for it.
    pub(in super::super) fn find_way(
        &self,
        id: SocketId,
        remote: SocketAddr,
    ) -> Result<(SocketAddr, IpAddr), Errno> {
        let socket = self.sockets.get(id)?;
        let ip = match remote.ip().to_canonical() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() && socket.local.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        if ip.is_ipv4() && socket.only_v6 {
            return Err(Errno::NetworkUnreachable);
        }
        let own = socket.local.ip();
        if !own.is_unspecified() && own.is_ipv4() != ip.is_ipv4() {
            return Err(Errno::NetworkUnreachable);
        }
        let route = self.hosts.route(socket.host, ip);
        if route == Route::NoNetwork {
            return Err(Errno::NetworkUnreachable);
        }
        if own.is_loopback() && route != Route::Local {
            return Err(Errno::Invalid);
        }
        let source = if own.is_unspecified() { self.hosts.source(socket.host, ip) } else { Some(own) };
        Ok((SocketAddr::new(ip, remote.port()), source.ok_or(Errno::NetworkUnreachable)?))
    }

    /// Writes to a connected socket. Returns how many bytes fit into the send buffer.
    pub(crate) fn send(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
        match self.sockets.get(id)?.kind {
            SocketKind::Tcp(_) => {
                let result = self.with_connection(id, |connection, cx| connection.send(bytes, cx))?;
                self.settle();
                Ok(result?)
            }
            SocketKind::Udp(_) => self.udp_send(id, bytes, None),
            SocketKind::Unix(_) => self.unix_send(id, bytes),
        }
    }

    /// Reads from a socket. Returns 0 at the end of a stream.
    pub(crate) fn recv(&mut self, id: SocketId, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(id, buffer, false)
    }

    /// Reads from a socket and leaves the bytes there.
    pub(crate) fn peek(&mut self, id: SocketId, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(id, buffer, true)
    }

    fn receive(&mut self, id: SocketId, buffer: &mut [u8], is_peek: bool) -> io::Result<usize> {
        match &self.sockets.get(id)?.kind {
            SocketKind::Tcp(tcp) if tcp.listener.is_some() => fail(Errno::NotConnected),
            SocketKind::Tcp(_) => {
                let result =
                    self.with_connection(id, |connection, cx| connection.receive(buffer, is_peek, cx))?;
                self.settle();
                Ok(result?)
            }
            SocketKind::Udp(_) => self.udp_receive(id, buffer, is_peek).map(|(count, _)| count),
            SocketKind::Unix(_) => self.unix_receive(id, buffer, is_peek),
        }
    }

    pub(in super::super) fn tcp_shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let tcp = self.sockets.get_mut(id)?.tcp()?;
        tcp.note_shutdown();
        if tcp.listener.is_some() {
            if how != Shutdown::Write {
                self.stop_listening(id);
                self.disconnect(id);
                self.push_edge(id);
                self.settle();
            }
            return Ok(());
        }
        if tcp.connection.state == TcpState::SynSent {
            tcp.progress = ConnectProgress::Unconnected;
            self.with_connection(id, |connection, _| {
                connection.fail(Errno::ConnectionReset);
                (connection.is_read_closed, connection.is_write_closed) = (false, false);
            })?;
            return Ok(());
        }
        let connection = &mut tcp.connection;
        connection.is_read_closed |= how != Shutdown::Write;
        connection.is_write_closed |= how != Shutdown::Read;
        let is_closed = connection.is_closed();
        self.push_edge(id);
        if is_closed {
            return fail(Errno::NotConnected);
        }
        if how != Shutdown::Read {
            self.with_connection(id, |connection, cx| connection.end_writing(cx))?;
        }
        self.settle();
        Ok(())
    }

    pub(in super::super) fn tcp_close(&mut self, id: SocketId) -> Result<(), Errno> {
        let tcp = self.sockets.get_mut(id)?.tcp()?;
        let is_abortive = tcp.is_abortive;
        self.stop_listening(id);
        self.sockets.get_mut(id)?.is_hidden = true;
        self.with_connection(id, |connection, cx| connection.close(is_abortive, cx))?;
        self.detach(id);
        Ok(())
    }

    /// Gives a connection that outlives its socket another number, so that calls with the old one fail.
    fn detach(&mut self, id: SocketId) {
        let Some(mut socket) = self.sockets.remove(id) else { return };
        socket.timer = None;
        let (host, local, remote) = (socket.host, socket.local, socket.remote);
        let new = self.sockets.insert(socket);
        let host = self.hosts.get_mut(host);
        host.tcp_ports.remove(local.port(), id);
        host.tcp_ports.insert(local.port(), new);
        if let Some(other) = remote.and_then(|remote| host.connections.get_mut(&(local, remote))) {
            *other = new;
        }
        self.follow(new);
    }
}
