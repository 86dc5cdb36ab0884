//! UDP.
//!
//! | file | content |
//! |---|---|
//! | `calls` | the calls of datagram sockets |
//! | `delivery` | the socket for a datagram or for an error, and what arrives there |

mod calls;
mod delivery;

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::errno::Errno;
use super::readiness::SocketReadiness;

/// A UDP socket.
#[derive(Debug, Default)]
pub(super) struct Udp {
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The sum of the payloads in the queue.
    queued: usize,
    pub(super) error: Option<Errno>,
    is_read_closed: bool,
    is_write_closed: bool,
}

impl Udp {
    pub(super) fn readiness(&self) -> SocketReadiness {
        SocketReadiness::READABLE.when(self.is_read_closed || !self.queue.is_empty())
            | SocketReadiness::WRITABLE
            | SocketReadiness::READ_HANGUP.when(self.is_read_closed)
            | SocketReadiness::HANGUP.when(self.is_read_closed && self.is_write_closed)
            | SocketReadiness::ERROR.when(self.error.is_some())
    }

    fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }
}
