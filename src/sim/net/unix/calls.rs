//! The calls for both kinds of UNIX sockets.

use std::io;
use std::net::Shutdown;

use super::super::Kernel;
use super::super::errno::{Errno, fail};
use super::super::ids::{Family, HostId, SocketId};
use super::super::sockets::{SocketKind, SocketState};
use super::{MAX_DATAGRAMS, Unix, UnixKind, UnixReceived};

impl Kernel {
    /// Makes a UNIX socket.
    pub(crate) fn unix_socket(&mut self, host: HostId, kind: UnixKind) -> io::Result<SocketId> {
        if !self.is_up(host) {
            return fail(Errno::NetworkDown);
        }
        let unix = SocketKind::Unix(Box::new(Unix::new(kind)));
        Ok(self.sockets.insert(SocketState::new(host, Family::V4, unix)))
    }

    /// Makes two UNIX sockets that are connected with each other.
    pub(crate) fn unix_pair(&mut self, host: HostId, kind: UnixKind) -> io::Result<(SocketId, SocketId)> {
        let (a, b) = (self.unix_socket(host, kind)?, self.unix_socket(host, kind)?);
        self.unix(a)?.peer = Some(b);
        self.unix(b)?.peer = Some(a);
        Ok((a, b))
    }

    pub(super) fn unix(&mut self, id: SocketId) -> Result<&mut Unix, Errno> {
        self.sockets.get_mut(id)?.unix()
    }

    pub(in super::super) fn is_unix(&self, id: SocketId) -> Result<bool, Errno> {
        Ok(matches!(self.sockets.get(id)?.kind, SocketKind::Unix(_)))
    }

    /// Gives a UNIX socket a path, which stays after the socket is closed.
    pub(crate) fn unix_bind(&mut self, id: SocketId, path: &[u8]) -> io::Result<()> {
        if self.unix(id)?.path.is_some() {
            return fail(Errno::Invalid);
        }
        let host = self.sockets.get(id)?.host;
        self.made += u64::from(path.is_empty());
        // Without a path, Linux chooses an abstract name.
        let chosen = format!("\0{:05x}", self.made);
        let path = if path.is_empty() { chosen.as_bytes() } else { path };
        let paths = &mut self.hosts.get_mut(host).paths;
        if paths.contains_key(path) {
            return fail(Errno::AddressInUse);
        }
        paths.insert(path.to_vec(), id);
        self.unix(id)?.path = Some(path.to_vec());
        Ok(())
    }

    /// Returns the path of a UNIX socket.
    pub(crate) fn unix_path(&mut self, id: SocketId) -> io::Result<Option<Vec<u8>>> {
        Ok(self.unix(id)?.path.clone())
    }

    /// Returns the path of the peer of a UNIX socket.
    pub(crate) fn unix_peer_path(&mut self, id: SocketId) -> io::Result<Option<Vec<u8>>> {
        let unix = self.unix(id)?;
        if unix.peer.is_some() { Ok(unix.peer_path.clone()) } else { fail(Errno::NotConnected) }
    }

    /// Removes the path of a UNIX socket if it names this one.
    pub(crate) fn unlink_own(&mut self, id: SocketId) -> io::Result<()> {
        let path = self.unix_path(id)?.unwrap_or_default();
        let host = self.sockets.get(id)?.host;
        let paths = &mut self.hosts.get_mut(host).paths;
        if paths.get(&path) == Some(&id) {
            paths.remove(&path);
        }
        Ok(())
    }

    #[cfg(test)]
    /// Removes the path of a UNIX socket. The socket stays connected.
    pub(crate) fn unlink(&mut self, host: HostId, path: &[u8]) -> io::Result<()> {
        match self.hosts.get_mut(host).paths.remove(path) {
            Some(_) => Ok(()),
            None => fail(Errno::NoEntry),
        }
    }

    /// Connects a UNIX socket with that of a path. A stream waits for `accept` and can be written to.
    pub(crate) fn unix_connect(&mut self, id: SocketId, path: &[u8]) -> io::Result<()> {
        let host = self.sockets.get(id)?.host;
        let unix = self.unix(id)?;
        let (kind, own_path) = (unix.kind, unix.path.clone());
        if kind == UnixKind::Stream && unix.peer.is_some() {
            return fail(Errno::IsConnected);
        }
        if unix.listener.is_some() {
            return fail(Errno::Invalid);
        }
        let target = self.find_path(host, path, kind)?;
        let peer = match kind {
            UnixKind::Datagram => target,
            UnixKind::Stream => self.unix_join(host, target, id, own_path, path)?,
        };
        let unix = self.unix(id)?;
        (unix.peer, unix.peer_path) = (Some(peer), Some(path.to_vec()));
        self.push_edge(id);
        Ok(())
    }

    pub(super) fn find_path(&mut self, host: HostId, path: &[u8], kind: UnixKind) -> Result<SocketId, Errno> {
        let target = *self.hosts.get(host).paths.get(path).ok_or(Errno::NoEntry)?;
        let unix = self.unix(target).map_err(|_| Errno::ConnectionRefused)?;
        if unix.kind == kind { Ok(target) } else { Err(Errno::WrongProtocolType) }
    }

    pub(in super::super) fn unix_send(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
        let unix = self.unix(id)?;
        unix.take_error()?;
        let (kind, is_closed) = (unix.kind, unix.is_write_closed);
        match (unix.peer, kind) {
            _ if is_closed => fail(Errno::BrokenPipe),
            (Some(peer), UnixKind::Stream) => self.unix_write(id, peer, bytes),
            (Some(peer), UnixKind::Datagram) => self.unix_deliver(id, peer, bytes),
            (None, _) => fail(Errno::NotConnected),
        }
    }

    pub(in super::super) fn unix_receive(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        is_peek: bool,
    ) -> io::Result<usize> {
        self.unix_recv_from(id, buffer, is_peek).map(|(count, _)| count)
    }

    /// Receives bytes or a datagram, and the path of the sender of a datagram.
    pub(crate) fn unix_recv_from(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        is_peek: bool,
    ) -> io::Result<UnixReceived> {
        let unix = self.unix(id)?;
        if unix.listener.is_some() || unix.kind == UnixKind::Stream && unix.peer.is_none() {
            return fail(Errno::Invalid);
        }
        if unix.queue.is_empty() {
            unix.take_error()?;
            return if unix.is_read_closed { Ok((0, None)) } else { fail(Errno::WouldBlock) };
        }
        let received = if unix.kind == UnixKind::Stream {
            (unix.read_stream(buffer, is_peek), None)
        } else {
            unix.read_datagram(buffer, is_peek)
        };
        if !is_peek {
            self.unix_has_read(id)?;
        }
        Ok(received)
    }

    /// Makes the senders writable for whose data the queue of a socket has room again.
    fn unix_has_read(&mut self, id: SocketId) -> Result<(), Errno> {
        let limit = self.settings.receive_buffer;
        let unix = self.unix(id)?;
        let has_room = match unix.kind {
            UnixKind::Stream => limit - unix.queued >= limit / 3,
            UnixKind::Datagram => unix.queue.len() <= MAX_DATAGRAMS,
        };
        if !has_room {
            return Ok(());
        }
        match (unix.kind, unix.peer) {
            (UnixKind::Stream, peer) => self.unblock_senders(peer),
            (UnixKind::Datagram, _) => self.release_datagrams(),
        }
        Ok(())
    }

    /// Makes all datagram sockets writable that a full receiver has stopped. Which receiver that was is not
    /// known: a socket may send to several.
    fn release_datagrams(&mut self) {
        let is_waiting = |(other, socket): (SocketId, &SocketState)| match &socket.kind {
            SocketKind::Unix(unix) if unix.kind == UnixKind::Datagram && !unix.has_room => Some(other),
            _ => None,
        };
        let waiting: Vec<_> = self.sockets.iter().filter_map(is_waiting).collect();
        self.unblock_senders(waiting);
    }

    /// Makes these sockets writable.
    fn unblock_senders(&mut self, senders: impl IntoIterator<Item = SocketId>) {
        for sender in senders {
            let Ok(unix) = self.unix(sender) else { continue };
            if !std::mem::replace(&mut unix.has_room, true) {
                self.push_edge(sender);
            }
        }
    }

    pub(in super::super) fn unix_shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
        let unix = self.unix(id)?;
        let Some(peer) = unix.peer else { return fail(Errno::NotConnected) };
        let (read, write) = (how != Shutdown::Write, how != Shutdown::Read);
        unix.is_read_closed |= read;
        unix.is_write_closed |= write;
        let is_stream = unix.kind == UnixKind::Stream;
        self.push_edge(id);
        if is_stream {
            if let Ok(other) = self.unix(peer) {
                other.is_read_closed |= write;
                other.is_write_closed |= read;
            }
            self.push_edge(peer);
        }
        Ok(())
    }

    pub(in super::super) fn unix_close(&mut self, id: SocketId) {
        let Ok(unix) = self.unix(id) else { return };
        let was_read = unix.queue.is_empty();
        let waiting = unix.listener.take().map(|(_, ready)| ready).unwrap_or_default();
        let (peer, kind) = (unix.peer, unix.kind);
        self.unix_leave(id, peer, kind, was_read);
        for child in waiting {
            let peer = self.unix(child).ok().and_then(|unix| unix.peer);
            self.unix_leave(child, peer, UnixKind::Stream, false);
        }
    }

    /// Removes a socket, and tells its peer.
    fn unix_leave(&mut self, id: SocketId, peer: Option<SocketId>, kind: UnixKind, was_read: bool) {
        self.forget(id);
        if kind == UnixKind::Datagram {
            self.release_datagrams();
        }
        let Some(peer) = peer.filter(|_| kind == UnixKind::Stream) else { return };
        let Ok(other) = self.unix(peer) else { return };
        (other.is_read_closed, other.is_write_closed) = (true, true);
        if !was_read {
            other.error = Some(Errno::ConnectionReset);
        }
        self.push_edge(peer);
    }
}

impl SocketState {
    fn unix(&mut self) -> Result<&mut Unix, Errno> {
        match &mut self.kind {
            SocketKind::Unix(unix) => Ok(unix),
            _ => Err(Errno::NotSupported),
        }
    }
}
