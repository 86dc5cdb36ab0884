//! TCP: streams and listeners.
//!
//! | file | content |
//! |---|---|
//! | `connection` | the state of a connection, and what a program sees of it |
//! | `input` | a segment arrives |
//! | `output` | bytes, acknowledgements and resets are sent; the retransmission timer |
//! | `streams` | the calls of streams |
//! | `listeners` | the calls of listeners, and connections that are made by a SYN |
//! | `delivery` | the socket for a segment, and what follows from the change of a connection |

mod connection;
mod delivery;
mod input;
mod listeners;
mod output;
mod streams;

use std::collections::{BTreeSet, VecDeque};

pub(super) use connection::{Connection, TcpState};

use super::ids::SocketId;

/// A TCP socket.
#[derive(Debug)]
pub(super) struct Tcp {
    pub(super) connection: Connection,
    pub(super) progress: ConnectProgress,
    /// `SO_LINGER` with a time of zero: `close` resets the connection.
    pub(super) is_abortive: bool,
    /// The socket listens.
    pub(super) listener: Option<Listener>,
    /// The listener that made the connection, until it is accepted.
    pub(super) parent: Option<SocketId>,
    /// The time before which no further segment arrives at the peer, because segments do not overtake each
    /// other.
    pub(super) last_arrival: std::time::Duration,
}

/// How far `connect` is, as the program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectProgress {
    Unconnected,
    /// `connect` has been called, and has not reported the end yet.
    Connecting,
    Connected,
    /// `shutdown` has ended the attempt of `connect`, or came after its failure: there is no further attempt.
    Disconnecting,
}

/// The queues of a listener.
#[derive(Debug, Default)]
pub(super) struct Listener {
    /// How many connections wait for `accept` at most, less one.
    pub(super) backlog: usize,
    /// The connections for `accept`.
    pub(super) ready: VecDeque<SocketId>,
    /// The connections whose handshake is not complete.
    pub(super) pending: BTreeSet<SocketId>,
}

impl Listener {
    /// Returns whether a further connection has to wait. As with Linux, one more than the backlog fits.
    pub(super) fn is_full(&self) -> bool {
        self.ready.len() > self.backlog
    }
}

impl Tcp {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            progress: ConnectProgress::Unconnected,
            is_abortive: false,
            listener: None,
            parent: None,
            last_arrival: std::time::Duration::ZERO,
        }
    }
}
