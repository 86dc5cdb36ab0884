//! UNIX sockets: streams and datagrams inside of a host, which are named by a path. They have no packets.
//!
//! This file has the state of a socket and its readiness.
//!
//! | file | content |
//! |---|---|
//! | `calls` | the calls for both kinds |
//! | `streams` | listeners, their connections, and the bytes of streams |
//! | `datagrams` | datagrams |

mod calls;
mod datagrams;
mod streams;

use std::collections::VecDeque;

use super::errno::Errno;
use super::ids::SocketId;
use super::readiness::SocketReadiness;

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
struct UnixMessage {
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
    queue: VecDeque<UnixMessage>,
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

    pub(super) fn readiness(&self) -> SocketReadiness {
        if let Some((_, ready)) = &self.listener {
            return SocketReadiness::READABLE.when(!ready.is_empty());
        }
        let is_fresh = self.kind == UnixKind::Stream && self.peer.is_none() && !self.is_read_closed;
        SocketReadiness::READABLE.when(self.is_read_closed || !self.queue.is_empty())
            | SocketReadiness::WRITABLE.when(self.has_room || self.is_write_closed)
            | SocketReadiness::READ_HANGUP.when(self.is_read_closed)
            | SocketReadiness::HANGUP.when(is_fresh || self.is_read_closed && self.is_write_closed)
            | SocketReadiness::ERROR.when(self.error.is_some())
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

/// The number of bytes or datagrams at the receiver, and the path of the sender.
pub(crate) type UnixReceived = (usize, Option<Vec<u8>>);
