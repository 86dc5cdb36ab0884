//! [`Limits`]: the limits of each connection.

use std::time::Duration;

/// The limits of each connection. These bound the memory of a connection: at most [`calls`](Limits::calls)
/// answers of [`message`](Limits::message) bytes if handlers make large results from small parameters,
/// otherwise a small multiple of [`bytes`](Limits::bytes). A silent connection may stay, and keeps its place.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of an incoming message, and of a result.
    pub message: usize,
    /// Requests in a batch.
    pub batch: usize,
    /// How deep a message may be nested: less than serde_json's limit of 128.
    pub depth: usize,
    /// Calls of a connection with answers that are not written yet. At this limit the next call waits after
    /// it was read, and nothing behind it is read. Unread messages include answers to this side's calls,
    /// which are late if so many handlers wait for them.
    pub calls: usize,
    /// Bytes of those calls: of a call until it is answered, and of its answer afterwards. The same applies.
    pub bytes: usize,
    /// Bytes of unrequested messages that the peer has not read yet. Beyond the limit the next such message
    /// closes the connection; a message before that may have any length.
    pub pushed: usize,
    /// How long a message may take from its first byte on. Over WebSocket, where a message has fragments, a
    /// ping between them restarts the time.
    pub partial: Duration,
    /// How long a peer may read nothing although messages wait.
    pub send: Duration,
    /// How long a task may take for its answer.
    pub task: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 1 << 20,
            batch: 200,
            depth: 64,
            calls: 400,
            bytes: 2 << 20,
            pushed: 1 << 20,
            partial: Duration::from_secs(30),
            send: Duration::from_secs(10),
            task: Duration::from_secs(30),
        }
    }
}
