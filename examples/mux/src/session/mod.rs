//! A connection without its transport: what each frame does, and what is owed to the peer.
//!
//! There is no I/O here, no clock and no task, so that a test can say all that may happen. One lock is around a session
//! ([`Shared`](crate::shared::Shared)), and wakers are called when it is free again: each change puts those who wait for it into a list.
//!
//! | who waits | for | is woken by |
//! |---|---|---|
//! | a stream's reader | bytes, an end, a reset | `receive` |
//! | a stream's writer | credit, or room in its frame | `receive`, `emit` |
//! | who flushes or closes a stream | its frame and its FIN to go out | `emit` |
//! | who opens | the peer's HELLO, or credit for streams | `receive` |
//! | who accepts | a stream, or a GOODBYE | `receive`, `say_goodbye` |
//! | the driver | something to send | whoever owes it: see `owe` |
//! | who closes the connection | its driver's end | `done` |
//! | all of them | the end of the connection | `end` |

mod call;
mod emit;
mod lane;
mod receive;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::mem::take;
use std::task::{Context, Poll};

use crate::Config;
use crate::error::{Code, Error, Violation};
use crate::frame::{Frame, MAX_CREDIT};
use crate::outbox::{Outbox, Spare};
use crate::waiting::{Line, Place, Wakes};
use lane::{Lane, add};

/// The code of a stream that was dropped before it was done.
pub(crate) const DROPPED: u32 = 0;
/// The code of a stream that nobody accepts.
const REFUSED: u32 = 1;

/// Who opens the streams with the odd numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// The streams that one of the sides opens.
#[derive(Debug)]
struct Side {
    /// The number of its next stream.
    next: u64,
    /// So many streams it may open.
    may_open: u32,
}

#[derive(Debug)]
pub(crate) struct Session {
    config: Config,
    lanes: HashMap<u32, Lane>,
    /// The lanes that owe something, each once.
    queue: VecDeque<u32>,
    /// Those that the peer has opened and nobody has accepted.
    arrived: VecDeque<u32>,
    ours: Side,
    theirs: Side,
    /// The window of each of our streams, as its HELLO says.
    peer_window: Option<u32>,

    // What is owed, other than by lanes.
    ping: bool,
    pong: Option<u64>,
    /// So many of the peer's streams are gone, for which it has no credit yet.
    gone: u32,
    /// Streams of which nothing was kept.
    refused: Vec<u32>,

    /// The ping that the peer has not answered.
    pinged: Option<u64>,
    pings: u64,
    /// GOODBYE was said, or is owed.
    leaving: Option<Leaving>,
    goodbye_heard: bool,
    ended: Option<Error>,
    /// How the driver ended.
    done: Option<Result<(), Error>>,

    spare: Spare,
    driver: Place,
    pub(crate) openers: Line,
    pub(crate) acceptors: Line,
    pub(crate) closers: Line,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaving {
    Owed,
    Said,
}

impl Session {
    pub(crate) fn new(role: Role, config: Config) -> Self {
        let (ours, theirs) = match role {
            Role::Client => (1, 2),
            Role::Server => (2, 1),
        };
        Self {
            lanes: HashMap::new(),
            queue: VecDeque::new(),
            arrived: VecDeque::new(),
            ours: Side { next: ours, may_open: 0 },
            theirs: Side { next: theirs, may_open: config.streams },
            peer_window: None,
            ping: false,
            pong: None,
            gone: 0,
            refused: Vec::new(),
            pinged: None,
            pings: 0,
            leaving: None,
            goodbye_heard: false,
            ended: None,
            done: None,
            spare: Spare::default(),
            driver: Place::default(),
            openers: Line::default(),
            acceptors: Line::default(),
            closers: Line::default(),
            config,
        }
    }

    /// Has the lane's turn come, in which it sends what it owes.
    fn owe(&mut self, id: u32, wakes: &mut Wakes) {
        let lane = held(&mut self.lanes, id);
        if !lane.queued {
            lane.queued = true;
            self.queue.push_back(id);
        }
        self.driver.wake(wakes);
    }

    /// Forgets a lane that is over, of which there is no handle, and whose turn is not to come. Then its opener may have another one.
    fn settle(&mut self, id: u32) {
        if self.lanes.get(&id).is_some_and(|lane| lane.is_over() && !lane.held && !lane.queued) {
            self.lanes.remove(&id);
            if self.is_theirs(id) {
                self.gone += 1;
            }
        }
    }

    fn is_theirs(&self, id: u32) -> bool {
        u64::from(id) % 2 == self.theirs.next % 2
    }

    /// The connection has ended, for all who wait and all who come.
    pub(crate) fn end(&mut self, why: Error, wakes: &mut Wakes) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(why);
        self.queue.clear();
        self.lanes.retain(|_, lane| {
            lane.end(wakes);
            lane.held
        });
        self.spare = Spare::default();
        self.openers.wake(wakes);
        self.acceptors.wake(wakes);
    }

    /// The driver has ended, too.
    pub(crate) fn done(&mut self, result: Result<(), Error>, wakes: &mut Wakes) {
        self.end(result.clone().err().unwrap_or(Error::Goodbye), wakes);
        if self.done.is_none() {
            self.done = Some(result);
            self.closers.wake(wakes);
        }
    }

    /// The memory that the bytes of streams have here: those that nobody has read, and those that wait to be sent.
    pub(crate) fn memory(&self) -> usize {
        self.spare.memory() + self.lanes.values().map(Lane::memory).sum::<usize>()
    }
}

/// A lane of which there is a handle.
fn held(lanes: &mut HashMap<u32, Lane>, id: u32) -> &mut Lane {
    lanes.get_mut(&id).expect("a lane stays for as long as it has a handle")
}
