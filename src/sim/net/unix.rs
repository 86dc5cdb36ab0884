//! UNIX sockets: streams and datagrams inside of a host, which are named by a path. They have no packets.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;

use super::Kernel;
use super::errno::{Errno, fail};
use super::hosts::HostId;
use super::readiness::Readiness;
use super::sockets::{Family, Kind, Socket, SocketId};

/// How many datagrams wait at a receiver: `net.unix.max_dgram_qlen` of Linux.
const MAX_DATAGRAMS: usize = 10;

/// The kind of a UNIX socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnixKind {
    /// `SOCK_STREAM`.
    Stream,
    /// `SOCK_DGRAM`.
    Datagram,
}

/// A message in the queue of a receiver: a datagram, or the bytes of one write to a stream.
#[derive(Debug)]
struct Message {
    from: Option<Vec<u8>>,
    bytes: VecDeque<u8>,
}

/// A UNIX socket.
#[derive(Debug)]
pub(super) struct Unix {
    kind: UnixKind,
    path: Option<Vec<u8>>,
    peer: Option<SocketId>,
    peer_path: Option<Vec<u8>>,
    queue: VecDeque<Message>,
    queued: usize,
    /// Whether the queue of the peer has room, so that the socket is writable.
    has_room: bool,
    is_read_closed: bool,
    is_write_closed: bool,
    pub(super) error: Option<Errno>,
    /// The backlog and the connections for `accept`.
    listener: Option<(usize, VecDeque<SocketId>)>,
}

impl Unix {
    fn new(kind: UnixKind) -> Self {
        Self {
            kind,
            path: None,
            peer: None,
            peer_path: None,
            queue: VecDeque::new(),
            queued: 0,
            has_room: true,
            is_read_closed: false,
            is_write_closed: false,
            error: None,
            listener: None,
        }
    }

    pub(super) fn readiness(&self) -> Readiness {
        if let Some((_, ready)) = &self.listener {
            return Readiness::READABLE.when(!ready.is_empty());
        }
        let is_fresh = self.kind == UnixKind::Stream && self.peer.is_none() && !self.is_read_closed;
        Readiness::READABLE.when(self.is_read_closed || !self.queue.is_empty())
            | Readiness::WRITABLE.when(self.has_room || self.is_write_closed)
            | Readiness::READ_HANGUP.when(self.is_read_closed)
            | Readiness::HANGUP.when(is_fresh || self.is_read_closed && self.is_write_closed)
            | Readiness::ERROR.when(self.error.is_some())
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the own name and that of the peer for a list.
    pub(super) fn names(&self) -> (String, String) {
        let name = |path: &Option<Vec<u8>>| match path {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => "*".to_owned(),
        };
        (name(&self.path), name(&self.peer_path))
    }

    fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl Socket {
    fn unix(&mut self) -> Result<&mut Unix, Errno> {
        match &mut self.kind {
            Kind::Unix(unix) => Ok(unix),
            _ => Err(Errno::NotSupported),
        }
    }
}

/// The number of bytes or datagrams at the receiver, and the path of the sender.
pub(crate) type Received = (usize, Option<Vec<u8>>);

impl Kernel {
    /// Makes a UNIX socket.
    pub(crate) fn unix_socket(&mut self, host: HostId, kind: UnixKind) -> io::Result<SocketId> {
        if !self.is_up(host) {
            return fail(Errno::NetworkDown);
        }
        let unix = Kind::Unix(Box::new(Unix::new(kind)));
        Ok(self.sockets.insert(Socket::new(host, Family::V4, unix)))
    }

    /// Makes two UNIX sockets that are connected with each other.
    pub(crate) fn unix_pair(&mut self, host: HostId, kind: UnixKind) -> io::Result<(SocketId, SocketId)> {
        let (a, b) = (self.unix_socket(host, kind)?, self.unix_socket(host, kind)?);
        self.unix(a)?.peer = Some(b);
        self.unix(b)?.peer = Some(a);
        Ok((a, b))
    }

    fn unix(&mut self, id: SocketId) -> Result<&mut Unix, Errno> {
        self.sockets.get_mut(id)?.unix()
    }

    pub(super) fn is_unix(&self, id: SocketId) -> Result<bool, Errno> {
        Ok(matches!(self.sockets.get(id)?.kind, Kind::Unix(_)))
    }

    /// Gives a UNIX socket a path, which stays after the socket is closed.
    pub(crate) fn unix_bind(&mut self, id: SocketId, path: &[u8]) -> io::Result<()> {
        if self.unix(id)?.path.is_some() {
            return fail(Errno::Invalid);
        }
        let host = self.sockets.get(id)?.host;
        let paths = &mut self.hosts.get_mut(host).paths;
        if paths.contains_key(path) {
            return fail(Errno::AddressInUse);
        }
        paths.insert(path.to_vec(), id);
        self.unix(id)?.path = Some(path.to_vec());
        Ok(())
    }

    /// Removes the path of a UNIX socket. The socket stays connected.
    pub(crate) fn unlink(&mut self, host: HostId, path: &[u8]) -> io::Result<()> {
        match self.hosts.get_mut(host).paths.remove(path) {
            Some(_) => Ok(()),
            None => fail(Errno::NoEntry),
        }
    }

    pub(super) fn unix_listen(&mut self, id: SocketId, backlog: usize) -> io::Result<()> {
        let unix = self.unix(id)?;
        if unix.kind != UnixKind::Stream {
            return fail(Errno::NotSupported);
        }
        if unix.path.is_none() || unix.peer.is_some() {
            return fail(Errno::Invalid);
        }
        let ready = unix.listener.take().map(|(_, ready)| ready).unwrap_or_default();
        unix.listener = Some((backlog, ready));
        Ok(())
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

    /// Makes the socket of the accepting side.
    fn unix_join(
        &mut self,
        host: HostId,
        target: SocketId,
        id: SocketId,
        own_path: Option<Vec<u8>>,
        path: &[u8],
    ) -> io::Result<SocketId> {
        match &self.unix(target)?.listener {
            None => return fail(Errno::ConnectionRefused),
            Some((backlog, ready)) if ready.len() > *backlog => return fail(Errno::WouldBlock),
            Some(_) => {}
        }
        let peer = self.unix_socket(host, UnixKind::Stream)?;
        let unix = self.unix(peer)?;
        (unix.peer, unix.peer_path, unix.path) = (Some(id), own_path, Some(path.to_vec()));
        if let Some((_, ready)) = &mut self.unix(target)?.listener {
            ready.push_back(peer);
        }
        self.sockets.get_mut(peer)?.is_hidden = true;
        self.push_edge(target);
        Ok(peer)
    }

    fn find_path(&mut self, host: HostId, path: &[u8], kind: UnixKind) -> Result<SocketId, Errno> {
        let target = *self.hosts.get(host).paths.get(path).ok_or(Errno::NoEntry)?;
        let unix = self.unix(target).map_err(|_| Errno::ConnectionRefused)?;
        if unix.kind == kind { Ok(target) } else { Err(Errno::WrongProtocolType) }
    }

    /// Returns the next connection of a listener, and the path of its peer.
    pub(crate) fn unix_accept(&mut self, id: SocketId) -> io::Result<(SocketId, Option<Vec<u8>>)> {
        let Some((_, ready)) = &mut self.unix(id)?.listener else { return fail(Errno::Invalid) };
        let Some(child) = ready.pop_front() else { return fail(Errno::WouldBlock) };
        self.sockets.get_mut(child)?.is_hidden = false;
        Ok((child, self.unix(child)?.peer_path.clone()))
    }

    pub(super) fn unix_send(&mut self, id: SocketId, bytes: &[u8]) -> io::Result<usize> {
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

    fn unix_write(&mut self, id: SocketId, peer: SocketId, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.settings.receive_buffer;
        let Ok(target) = self.unix(peer) else { return fail(Errno::BrokenPipe) };
        if target.is_read_closed {
            return fail(Errno::BrokenPipe);
        }
        let count = bytes.len().min(limit - target.queued.min(limit));
        if count > 0 {
            target.queued += count;
            let message = Message { from: None, bytes: bytes[..count].iter().copied().collect() };
            target.queue.push_back(message);
            let has_room = limit - target.queued >= limit / 3 && target.queued < limit;
            self.push_edge(peer);
            self.unix(id)?.has_room = has_room;
        } else if !bytes.is_empty() {
            return fail(Errno::WouldBlock);
        }
        Ok(count)
    }

    /// Sends a datagram to the socket of a path.
    pub(crate) fn unix_send_to(&mut self, id: SocketId, bytes: &[u8], path: &[u8]) -> io::Result<usize> {
        let host = self.sockets.get(id)?.host;
        if self.unix(id)?.kind != UnixKind::Datagram {
            return fail(if self.unix(id)?.peer.is_some() {
                Errno::IsConnected
            } else {
                Errno::NotSupported
            });
        }
        let target = self.find_path(host, path, UnixKind::Datagram)?;
        self.unix_deliver(id, target, bytes)
    }

    fn unix_deliver(&mut self, id: SocketId, peer: SocketId, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.settings.send_buffer {
            return fail(Errno::MessageTooLong);
        }
        let from = self.unix(id)?.path.clone();
        let Ok(target) = self.unix(peer) else { return fail(Errno::ConnectionRefused) };
        if target.is_read_closed {
            return fail(Errno::BrokenPipe);
        }
        // As with Linux, one more than the limit fits.
        if target.queue.len() > MAX_DATAGRAMS {
            self.unix(id)?.has_room = false;
            return fail(Errno::WouldBlock);
        }
        target.queued += bytes.len();
        target.queue.push_back(Message { from, bytes: bytes.iter().copied().collect() });
        self.push_edge(peer);
        Ok(bytes.len())
    }

    pub(super) fn unix_receive(
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
    ) -> io::Result<Received> {
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
        let is_waiting = |(other, socket): (SocketId, &Socket)| match &socket.kind {
            Kind::Unix(unix) if unix.peer == Some(id) && !unix.has_room => Some(other),
            _ => None,
        };
        let waiting: Vec<_> = match unix.kind {
            UnixKind::Stream => unix.peer.into_iter().collect(),
            UnixKind::Datagram => self.sockets.iter().filter_map(is_waiting).collect(),
        };
        for sender in waiting {
            let Ok(unix) = self.unix(sender) else { continue };
            if !std::mem::replace(&mut unix.has_room, true) {
                self.push_edge(sender);
            }
        }
        Ok(())
    }

    pub(super) fn unix_shutdown(&mut self, id: SocketId, how: Shutdown) -> io::Result<()> {
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

    pub(super) fn unix_close(&mut self, id: SocketId) {
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
        let Some(peer) = peer.filter(|_| kind == UnixKind::Stream) else { return };
        let Ok(other) = self.unix(peer) else { return };
        (other.is_read_closed, other.is_write_closed) = (true, true);
        if !was_read {
            other.error = Some(Errno::ConnectionReset);
        }
        self.push_edge(peer);
    }
}

impl Unix {
    fn read_stream(&mut self, buffer: &mut [u8], is_peek: bool) -> usize {
        let mut count = 0;
        for message in &self.queue {
            for (target, byte) in buffer[count..].iter_mut().zip(&message.bytes) {
                *target = *byte;
                count += 1;
            }
        }
        if !is_peek {
            self.queued -= count;
            let mut left = count;
            while let Some(message) = self.queue.front_mut() {
                let taken = left.min(message.bytes.len());
                message.bytes.drain(..taken);
                left -= taken;
                if !message.bytes.is_empty() {
                    break;
                }
                self.queue.pop_front();
            }
        }
        count
    }

    fn read_datagram(&mut self, buffer: &mut [u8], is_peek: bool) -> Received {
        let Some(message) = self.queue.front() else { return (0, None) };
        let count = message.bytes.len().min(buffer.len());
        for (target, byte) in buffer.iter_mut().zip(&message.bytes) {
            *target = *byte;
        }
        let from = message.from.clone();
        if !is_peek {
            self.queued -= message.bytes.len();
            self.queue.pop_front();
        }
        (count, from)
    }
}
