//! [`Limits`]: what nobody may have more of.

use std::time::Duration;

/// What nobody may have more of. What a connection holds in memory is bounded by these: at most [`calls`](Limits::calls) answers of
/// [`message`](Limits::message) bytes, if handlers make much of little, else some times [`bytes`](Limits::bytes). One on which nothing is
/// said may stay, and keeps its place.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a message that comes, and of a result that goes.
    pub message: usize,
    /// Requests in a batch.
    pub batch: usize,
    /// How deep a message may be nested: less than what serde_json takes, which is 128.
    pub depth: usize,
    /// Calls of a connection whose answers are not written yet. With so many, the next one that is read waits, and what comes behind it
    /// is not read: nor are answers to calls of ours, which are late then if so many wait for them.
    pub calls: usize,
    /// Bytes of those: of a call until it is answered, of its answer from then on. The same holds.
    pub bytes: usize,
    /// Bytes that were sent to a peer without being asked, and that it has not taken. With more, the connection is closed.
    pub pushed: usize,
    /// How long a message may take that has begun to come. Over WebSocket, where it comes in fragments, a ping between them begins anew.
    pub partial: Duration,
    /// How long a peer may take nothing of what it is sent.
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
