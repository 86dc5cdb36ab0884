//! UNIX datagrams.

use std::io;

use super::super::Kernel;
use super::super::errno::{Errno, fail};
use super::super::ids::SocketId;
use super::{MAX_DATAGRAMS, Unix, UnixKind, UnixMessage, UnixReceived};

impl Kernel {
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

    pub(super) fn unix_deliver(&mut self, id: SocketId, peer: SocketId, bytes: &[u8]) -> io::Result<usize> {
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
        target.queue.push_back(UnixMessage { from, bytes: bytes.iter().copied().collect() });
        self.push_edge(peer);
        Ok(bytes.len())
    }
}

impl Unix {
    pub(super) fn read_datagram(&mut self, buffer: &mut [u8], is_peek: bool) -> UnixReceived {
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
