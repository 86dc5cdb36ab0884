//! UNIX streams: listeners, their connections, and the bytes.

use std::io;

use super::super::Kernel;
use super::super::errno::{Errno, fail};
use super::super::ids::{HostId, SocketId};
use super::{Unix, UnixKind, UnixMessage};

impl Kernel {
    pub(in super::super) fn unix_listen(&mut self, id: SocketId, backlog: usize) -> io::Result<()> {
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

    /// Makes the socket of the accepting side.
    pub(super) fn unix_join(
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

    /// Returns the next connection of a listener, and the path of its peer.
    pub(crate) fn unix_accept(&mut self, id: SocketId) -> io::Result<(SocketId, Option<Vec<u8>>)> {
        let Some((_, ready)) = &mut self.unix(id)?.listener else { return fail(Errno::Invalid) };
        let Some(child) = ready.pop_front() else { return fail(Errno::WouldBlock) };
        self.sockets.get_mut(child)?.is_hidden = false;
        Ok((child, self.unix(child)?.peer_path.clone()))
    }

    pub(super) fn unix_write(&mut self, id: SocketId, peer: SocketId, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.settings.receive_buffer;
        let Ok(target) = self.unix(peer) else { return fail(Errno::BrokenPipe) };
        if target.is_read_closed {
            return fail(Errno::BrokenPipe);
        }
        let count = bytes.len().min(limit - target.queued.min(limit));
        if count > 0 {
            target.queued += count;
            let message = UnixMessage { from: None, bytes: bytes[..count].iter().copied().collect() };
            target.queue.push_back(message);
            let has_room = limit - target.queued >= limit / 3 && target.queued < limit;
            self.push_edge(peer);
            self.unix(id)?.has_room = has_room;
        } else if !bytes.is_empty() {
            return fail(Errno::WouldBlock);
        }
        Ok(count)
    }
}

impl Unix {
    pub(super) fn read_stream(&mut self, buffer: &mut [u8], is_peek: bool) -> usize {
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
}
